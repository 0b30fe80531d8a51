"""A view as ``table.js`` draws it, and what a page needs for that."""

from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

from conquian_env.actions import action_name
from conquian_env.cards import card_mask
from conquian_env.melds import split_most
from conquian_env.rules import RuleSet
from conquian_env.scene import headline
from conquian_env.view import View

Laid = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


def picture(view: View) -> dict[str, Any]:
    """The values of ``view.to_json()``, and what the page cannot know without the rules.

    ``melds`` and ``other_melds`` are the tables as combinations, ``loose`` and ``other_loose``
    their cards that are in none yet; ``names`` are those of the legal actions by id (as text);
    ``target`` is the size of a table that wins; ``headline`` and ``prompt`` say whose turn it is
    and what is asked, or who won.
    """
    melds, loose = _laid(card_mask(view.table), view.rules)
    other_melds, other_loose = _laid(card_mask(view.other_table), view.rules)
    about, prompt = headline(view)
    values = {field.name: getattr(view, field.name) for field in fields(view)}
    return values | {
        "rules": view.rules.to_dict(),
        "melds": melds,
        "loose": loose,
        "other_melds": other_melds,
        "other_loose": other_loose,
        "names": action_names(view.legal_actions),
        "target": view.rules.target,
        "headline": about,
        "prompt": prompt,
    }


def action_names(actions: Iterable[int]) -> dict[str, str]:
    """Names by id, the id as a text, as JSON has the keys of its tables."""
    return {str(action): action_name(action) for action in actions}


@lru_cache(maxsize=4096)
def _laid(table: int, rules: RuleSet) -> Laid:
    return split_most(table, rules)


def asset(name: str) -> str:
    """The text of a file beside this one, such as ``table.js`` and ``table.css``."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
