"""The table as text, drawn from views alone, so that a seat's picture cannot show more."""

from conquian_env.actions import action_name, event_text
from conquian_env.cards import card_mask, card_name, cards_text
from conquian_env.melds import split
from conquian_env.view import View


def text(view: View, other: View | None = None) -> str:
    """The table as ``view.seat`` sees it; with the other seat's view too, both hands open."""
    hidden, dead = f"({view.other_hand_size} hidden)", cards_text(view.dead) or "-"
    own, theirs = cards_text(view.hand), cards_text(other.hand) if other else hidden
    lines = [
        f"seat {1 - view.seat}   table {_melds(view, view.other_table)}   hand {theirs or '-'}",
        f"stock {view.stock_count}   face up {_face_up(view)}   dead {dead}",
        f"seat {view.seat}   table {_melds(view, view.table)}   hand {own or '-'}",
        _prompt(view, other),
    ]
    if view.history:
        lines.append(f"last: {event_text(view.history[-1])}")
    return "\n".join(lines)


def _melds(view: View, ids: tuple[int, ...]) -> str:
    """A table as combinations; loose cards while a take is still being laid."""
    groups = split(card_mask(ids), view.rules)
    if groups is None:
        return f"{cards_text(ids)} (being laid)"
    return " ".join(f"[{cards_text(group)}]" for group in groups) or "-"


def _face_up(view: View) -> str:
    return "-" if view.face_up is None else f"{card_name(view.face_up)} ({view.source})"


def _prompt(view: View, other: View | None) -> str:
    if view.phase == "over":
        return "draw" if view.winner is None else f"seat {view.winner} went out and wins"
    actions = view.legal_actions or (other.legal_actions if other else ())
    choices = ": " + ", ".join(map(action_name, actions)) if actions else ""
    return f"seat {view.actor} to act ({view.phase}){choices}"
