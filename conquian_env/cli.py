"""``python -m conquian_env``: show deals and records, replay records, count action sequences."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from conquian_env.actions import action_name
from conquian_env.errors import ConquianError, OptionError
from conquian_env.game import Game
from conquian_env.perft import perft
from conquian_env.record import GameRecord, read_record, read_records, replay, write_whole
from conquian_env.render import text
from conquian_env.rules import PRESETS, RuleSet
from conquian_env.state import Phase
from conquian_env.viewer import Perspective, to_html

DEAL = {"rules": "classic", "seed": 0, "deal": 0}
SEATS: dict[str, Perspective] = {"0": 0, "1": 1, "open": "open"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status: 0, or 1 after one line on stderr (2 for usage)."""
    options = _parser().parse_args(argv)
    try:
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; nothing is left to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ConquianError, OSError) as error:
        print(f"conquian_env: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conquian_env", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("replay", help="print the games of a record file, ply by ply")
    command.add_argument("file", metavar="FILE", help="JSON lines, one game each")
    _add_line(command)
    command.set_defaults(command=_replay)

    command = commands.add_parser("perft", help="count the action sequences from a deal, by length")
    _add_deal(command)
    command.add_argument("--depth", type=int, default=10, metavar="N", help="actions (10)")
    command.set_defaults(command=_perft)

    command = commands.add_parser("show", help="print a fresh deal, or print or draw records")
    command.add_argument("file", nargs="?", metavar="FILE", help="show the games of this file")
    _add_line(command)
    command.add_argument(
        "--html", metavar="PAGE", help="write a replay for the browser, in place of what is there"
    )
    _add_deal(command)
    command.add_argument(
        "--seat",
        choices=SEATS,
        help="who looks; open: both hands (a deal 0, FILE open)",
    )
    command.set_defaults(command=_show, refuse=command.error, **dict.fromkeys(DEAL))
    return parser


def _add_line(command: argparse.ArgumentParser) -> None:
    command.add_argument("--line", type=int, metavar="N", help="the game in this line alone")


def _add_deal(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rules", help=f"{', '.join(PRESETS)}, with changes as in classic,deal=8 (classic)"
    )
    command.add_argument("--seed", type=int, help="0 to 2**64 - 1 (0)")
    command.add_argument("--deal", type=int, help="number under the seed (0)")
    command.set_defaults(**DEAL)


def _replay(options: argparse.Namespace) -> None:
    for record in _records(options):
        _print_game(record, "open")


def _records(options: argparse.Namespace) -> list[GameRecord]:
    if options.line is None:
        return read_records(options.file)
    return [read_record(options.file, options.line)]


def _print_game(record: GameRecord, seat: Perspective) -> None:
    """Heading, every state with the action that led to it, and the result."""
    print(record.heading)
    states = list(replay(record))
    _print_state(states[0], seat)
    for before, after, action in zip(states, states[1:], record.actions, strict=False):
        unseen = before.phase == Phase.GIVE and seat not in (before.actor, "open")
        print(f"\n{after.ply}. {'give' if unseen else action_name(action)}")
        _print_state(after, seat)
    print(f"\n{record.result}\n")


def _print_state(game: Game, seat: Perspective) -> None:
    print(text(game.view(0), game.view(1)) if seat == "open" else text(game.view(seat)))


def _perft(options: argparse.Namespace) -> None:
    game, depth = _game(options), options.depth
    for reached in range(1, depth + 1) if depth > 0 else (depth,):  # each as soon as it is known
        print(f"{reached:>5} {perft(game, reached)[-1]:>15,}", flush=True)


def _show(options: argparse.Namespace) -> None:
    if options.file is None:
        _show_deal(options)
    else:
        _show_records(options)


def _show_deal(options: argparse.Namespace) -> None:
    for name in ("line", "html"):
        if getattr(options, name) is not None:
            options.refuse(f"--{name} is about the games of a FILE, and none is given")
    for name, value in DEAL.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    _print_state(_game(options), SEATS[options.seat or "0"])


def _show_records(options: argparse.Namespace) -> None:
    for name in DEAL:
        if getattr(options, name) is not None:
            options.refuse(
                f"--{name} is about a fresh deal, and the games of {options.file} have theirs"
            )
    seat = SEATS[options.seat or "open"]
    if options.html is None:
        for record in _records(options):
            _print_game(record, seat)
        return
    page = Path(options.html)
    if not page.parent.is_dir():
        raise OptionError(f"{page}: there is no folder {page.parent}")
    if page.is_dir():
        raise OptionError(f"{page} is a folder, not a page")
    if page.resolve() == Path(options.file).resolve():
        raise OptionError(f"{page}: the page would take the place of the records")
    write_whole(page, [to_html(_records(options), seat)])
    print(f"replay: {page}")


def _game(options: argparse.Namespace) -> Game:
    return Game(RuleSet.from_text(options.rules), options.seed, options.deal)
