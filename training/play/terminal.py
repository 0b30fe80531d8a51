"""A game in the terminal: the table drawn, what happened in words, choices by number or name."""

import os
import re
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal

from rich.columns import Columns
from rich.console import Console
from rich.text import Text

from agents.agent import AgentError
from conquian_env import Phase, View, action_name, card_name
from conquian_env.actions import DISCARD, FORCE, LAY, PASS, TAKE
from conquian_env.cards import NAMES, NUM_CARDS, SUITS, card, card_mask
from conquian_env.errors import CardError, ConquianError, IllegalActionError, OptionError
from conquian_env.melds import split_most
from training.play.session import Session
from training.play.words import Line, question, result

SIGNS = "♣♦♥♠"  # in the order of SUITS
CARD = re.compile(rf"\b([A-Z2-7])([{SUITS}])\b")
ANSWERS = {"pass": PASS, "decline": PASS, "take": TAKE, "force": FORCE, "insist": FORCE}
VERBS = {"lay": LAY, "discard": DISCARD, "give": DISCARD}
HELP = """\
Say what you do by its number, or by its name: take, pass, insist, lay 7D,
discard 7D; or by a card alone where only one thing can be done with it.
Several in a row: take lay 7D 6D discard KS
hint   what an agent would do
undo   take your last choice back, in a game with --undo
help   this
quit   break the game off; it is kept in the record"""


class Screen:
    """Where a game is shown.

    Cards have the signs of their suits where the encoding has them, and red ones are red unless
    the terminal has no colours or ``NO_COLOR`` is set.
    """

    def __init__(self) -> None:
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        self._console = Console(color_system=colours, highlight=False)
        try:
            SIGNS.encode(sys.stdout.encoding)
        except UnicodeEncodeError:
            self._signs = dict(zip(SUITS, SUITS, strict=True))
        else:
            self._signs = dict(zip(SUITS, SIGNS, strict=True))

    def say(self, *parts: str | Text | tuple[str, str], bold: bool = False) -> None:
        """Print a line of words; ``cards`` makes cards of the names in one."""
        self._console.print(Text.assemble(*parts), style="bold" if bold else None)

    def cards(self, words: str) -> Text:
        """Words in which the names of cards look like cards."""
        text, end = Text(), 0
        for match in CARD.finditer(words):
            if match[0] in NAMES:
                text.append(words[end : match.start()])
                text.append_text(self._card(match[1], match[2]))
                end = match.end()
        return text.append(words[end:])

    def _card(self, rank: str, suit: str) -> Text:
        return Text(rank + self._signs[suit], "bold red" if suit in "DH" else "bold")

    def happened(self, lines: Iterable[Line]) -> None:
        """What happened, a line for all that one did in a row."""
        for who, told in groupby(lines, key=lambda line: line.who):
            did = self.cards(", ".join(line.what for line in told))
            self.say(f"  {who} " if who else "  ", did)

    def table(self, view: View, other: str) -> None:
        """The table as the person sees it."""
        known = f", {_names(view.known)} among them" if view.known else ""
        in_hand = f"{view.other_hand_size} in hand{known}"
        offer = "-" if view.face_up is None else f"{card_name(view.face_up)} ({view.source})"
        stake = f"   stake {view.stake}" if view.stake > 1 else ""
        self.say()
        self._row(f"{other}: ", in_hand)
        self._row("  table      ", _melds(view, view.other_table))
        self._row("stock        ", f"{view.stock_count}   on offer {offer}{stake}")
        self._row("dead         ", _by_suit(view.dead))
        self._row("your table   ", _melds(view, view.table))
        self._row("your hand    ", _by_suit(view.hand))

    def _row(self, label: str, words: str) -> None:
        self.say((label, "dim"), self.cards(words or "-"))

    def choices(self, view: View) -> None:
        """What may be done, numbered."""
        self.say()
        self.say(self.cards(question(view)), bold=True)
        named = [self.cards(action_name(action)) for action in view.legal_actions]
        texts = [Text.assemble((f"{i:>3} ", "dim"), name) for i, name in enumerate(named, 1)]
        self._console.print(Columns(texts, padding=(0, 2)))

    def hint(self, spec: str, hint: dict[str, float]) -> None:
        """What an agent would do, and how likely where that is not certain."""
        likely = sorted(hint.items(), key=lambda pair: -pair[1])
        told = [f"{name} {share:.0%}" for name, share in likely if share >= 0.005]
        if len(told) == 1:
            told = [likely[0][0]]
        self.say(f"  {spec} would: ", self.cards(", ".join(told)))

    def ending(self, session: Session) -> None:
        """How it ended, and the hand that was hidden."""
        if session.failure:
            self.say(f"The game is broken off: {session.failure}", bold=True)
        spec = session.setting.opponent.spec
        self.table(session.view, spec)
        self._row(f"{spec} held ", _by_suit(session.other_view.hand))
        if not session.failure:
            self.say(result(session.view, spec), bold=True)


def _names(ids: Iterable[int]) -> str:
    return " ".join(map(card_name, ids))


def _by_suit(ids: Iterable[int]) -> str:
    suits = groupby(ids, key=lambda card_id: card_name(card_id)[1])
    return "   ".join(_names(suit) for _, suit in suits)


def _melds(view: View, ids: tuple[int, ...]) -> str:
    groups, loose = split_most(card_mask(ids), view.rules)
    texts = [f"[{_names(group)}]" for group in groups]
    return " ".join([*texts, f"{_names(loose)} (being laid)"] if loose else texts)


def parse(line: str, view: View) -> list[int]:
    """The actions that a line names, one or more in a row; not whether they are legal.

    Raises:
        ConquianError: it names none, or a card alone with which more can be done than one thing.
    """
    words = _plain(line).split()
    if len(words) == 1 and len(words[0]) < 5 and words[0].isdecimal():
        return [_numbered(int(words[0]), view.legal_actions)]
    if len(words) == 1 and words[0].upper() in NAMES:
        return [_with_card(card(words[0].upper()), view)]
    actions, verb = list[int](), None
    for word in words:
        if word in ANSWERS:
            actions.append(ANSWERS[word])
        elif verb is not None and word not in VERBS:
            actions.append(VERBS[verb] + card(word.upper()))
        elif word not in VERBS:
            raise IllegalActionError(f"{word!r} is nothing that can be done (type help)")
        verb = word if word in VERBS else verb if word not in ANSWERS else None
    if words[-1] in VERBS:
        raise IllegalActionError(f"{words[-1]} which card?")
    return actions


def _plain(line: str) -> str:
    """A line with letters for the signs of suits."""
    return line.translate(str.maketrans(SIGNS, SUITS)).lower()


def _numbered(number: int, legal: tuple[int, ...]) -> int:
    if not 1 <= number <= len(legal):
        raise OptionError(f"there is no choice {number}: they run from 1 to {len(legal)}")
    return legal[number - 1]


def _with_card(card_id: int, view: View) -> int:
    """The one thing that can be done with a card."""
    found = [a for a in view.legal_actions if a >= LAY and (a - LAY) % NUM_CARDS == card_id]
    if card_id == view.face_up and TAKE in view.legal_actions:
        found.append(TAKE)
    if len(found) != 1:
        ways = " or ".join(map(action_name, found)) or "nothing can be done with it now"
        raise CardError(f"{card_name(card_id)}: {ways}{'?' * bool(found)}")
    return found[0]


def play(session: Session) -> None:
    """A game, until it is over or the person leaves; saving it is the caller's part."""
    screen = Screen()
    session.begin()
    screen.say(
        f"You play {session.setting.rules.to_text()} against ", session.setting.opponent.spec
    )
    screen.say("help says how to answer.")
    _show(screen, session)
    while not session.over:
        try:
            line = _read()
        except EOFError:
            screen.say("end of input")
            return
        if line.lower() in ("quit", "exit", "q"):
            return
        try:
            _obey(line.lower(), screen, session)
        except AgentError as error:
            screen.say(f"no hint: {error}")
        except ConquianError as error:
            screen.say(screen.cards(str(error)))
            screen.choices(session.view)


def _read() -> str:
    """The next line; one that is not typed is shown as if it were.

    Raises:
        EOFError: there is none.
    """
    try:
        line = input("> ").strip()
    except EOFError:
        print()
        raise
    if not sys.stdin.isatty():
        print(line)
    return line


def _obey(line: str, screen: Screen, session: Session) -> None:
    """Do what a line says.

    Raises:
        ConquianError: that cannot be; nothing has changed.
    """
    commands: dict[str, Callable[[], None]] = {
        "": lambda: _show(screen, session),
        "?": lambda: screen.say(HELP),
        "help": lambda: screen.say(HELP),
        "hint": lambda: screen.hint(session.adviser.spec, session.hint()),
        "undo": session.undo,
    }
    if line in commands:
        commands[line]()
    else:
        session.choose(*parse(line, session.view))
    if line == "undo" or line not in commands:
        _show(screen, session)


def _show(screen: Screen, session: Session) -> None:
    """All that a choice needs, or how the game ended."""
    screen.say()
    news = session.news()
    if session.view.phase == Phase.OVER:
        news.pop()  # the result, which the ending says
    screen.happened(news)
    if session.over:
        screen.ending(session)
    else:
        screen.table(session.view, session.setting.opponent.spec)
        screen.choices(session.view)
