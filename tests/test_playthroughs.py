"""One game of every preset, written down ply by ply, that is never to play differently.

``python -m tests.test_playthroughs`` writes ``tests/golden/playthroughs`` anew, for every preset:
what changes in the files is what has changed in the game.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from conquian_env import Game, GameRecord, Phase, RuleSet
from conquian_env.actions import DISCARD, FORCE, LAY, TAKE, action_name
from conquian_env.cards import cards_text
from conquian_env.observation import LAYOUT
from conquian_env.record import replay
from conquian_env.render import text
from conquian_env.rules import PRESETS
from tests.playing import random_actions

FOLDER = Path(__file__).parent / "golden" / "playthroughs"
SEED, DEALS = 1, 5_000
SEEN = ("unseen", "declined", "known")


def playthrough(record: GameRecord) -> Iterator[str]:
    """The lines of a file: the rules, every state with what is legal and seen, the record."""
    yield f"rules {record.rules.to_text()}: {json.dumps(record.rules.to_dict())}"
    actions = [action_name(action) for action in record.actions]
    for game, action in zip(replay(record), [*actions, "nothing, it is over"], strict=True):
        yield f"\nply {game.ply}"
        yield text(game.view(0), game.view(1))
        yield f"legal {' '.join(map(str, game.legal_actions())) or '-'}"
        yield from (seen(game, seat) for seat in (0, 1))
        yield f"returns {game.returns()}"
        yield f"then {action}"
    yield f"\n{record.to_text()}"


def seen(game: Game, seat: int) -> str:
    """The cards of an observation that the picture does not show, and a digest of it all."""
    observation = game.observation(seat)
    pieces = [
        f"{name} {cards_text(observation[LAYOUT[name]].nonzero()[0].tolist()) or '-'}"
        for name in SEEN
    ]
    digest = hashlib.sha256(observation.tobytes()).hexdigest()[:16]
    return f"seat {seat} sees {', '.join(pieces)}; observation {digest}"


def wanted(rules: RuleSet) -> set[str]:
    """What a playthrough has to show."""
    kinds = {"take", "lay", "discard"}
    kinds |= {"insist"} if rules.force == "optional" else set()
    kinds |= {"give"} if rules.exchange else set()
    return kinds | ({"hand meld"} if rules.hand_melds else set())


def shown(record: GameRecord) -> set[str]:
    pairs = zip(replay(record), record.actions, strict=False)
    return {kind(state.phase, action) for state, action in pairs}


def kind(phase: Phase, action: int) -> str:
    """What an action is, in a word."""
    if phase == Phase.FORCE:
        return "insist" if action == FORCE else "do not insist"
    if action >= DISCARD:
        return "give" if phase == Phase.GIVE else "discard"
    if action >= LAY:
        return "hand meld" if phase == Phase.TURNED else "lay"
    return "take" if action == TAKE else "pass"


def find(preset: str) -> GameRecord:
    """The first game by random players that shows all that is wanted."""
    for deal in range(DEALS):
        start = Game(preset, SEED, deal)
        record = GameRecord.of(start, random_actions(start, deal), ("random", "random"))
        if wanted(start.rules) <= shown(record):
            return record
    raise LookupError(f"{preset}: no game in {DEALS} shows all of {wanted(RuleSet.preset(preset))}")


def write(preset: str) -> None:
    (FOLDER / f"{preset}.txt").write_text("\n".join(playthrough(find(preset))) + "\n")


@pytest.mark.parametrize("preset", PRESETS)
def test_golden_playthroughs_never_change(preset: str) -> None:
    lines = (FOLDER / f"{preset}.txt").read_text().splitlines()
    record = GameRecord.from_text(lines[-1])
    assert record.rules == RuleSet.preset(preset)
    assert "\n".join(playthrough(record)).splitlines() == lines
    assert wanted(record.rules) <= shown(record)


def test_every_preset_has_one_and_nothing_else_does() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(PRESETS)


if __name__ == "__main__":
    for name in PRESETS:
        write(name)
