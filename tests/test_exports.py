"""The public face: what ``conquian_env`` exports, that it is documented, and that it is typed."""

from pathlib import Path

import conquian_env

PACKAGE = Path(conquian_env.__file__).parent


def test_the_export_list() -> None:
    assert conquian_env.__all__ == [
        "Batch",
        "Game",
        "GameRecord",
        "Outcome",
        "Phase",
        "RuleSet",
        "Solution",
        "Source",
        "Termination",
        "View",
        "Views",
        "action_name",
        "card",
        "card_name",
        "cards",
        "parse_action",
        "solve",
    ]


def test_every_export_is_there() -> None:
    for name in conquian_env.__all__:
        assert getattr(conquian_env, name).__module__.startswith("conquian_env.")
    scope: dict[str, object] = {}
    exec("from conquian_env import *", scope)
    assert set(scope) - {"__builtins__"} == set(conquian_env.__all__)
