"""``python -m conquian_env``: replay records, count action sequences, show a deal."""

import argparse
import os
import sys
from collections.abc import Sequence

from conquian_env.actions import action_name
from conquian_env.errors import ConquianError
from conquian_env.game import Game
from conquian_env.perft import perft
from conquian_env.record import GameRecord, read_record, read_records, replay
from conquian_env.render import text
from conquian_env.rules import PRESETS, RuleSet


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
    command.add_argument("--line", type=int, metavar="N", help="the game in this line alone")
    command.set_defaults(command=_replay)

    command = commands.add_parser("perft", help="count the action sequences from a deal, by length")
    _add_deal(command)
    command.add_argument("--depth", type=int, default=10, metavar="N", help="actions (10)")
    command.set_defaults(command=_perft)

    command = commands.add_parser("show", help="print the table of a fresh deal")
    _add_deal(command)
    command.add_argument(
        "--seat", choices=("0", "1", "open"), default="0", help="who looks; open: both hands (0)"
    )
    command.set_defaults(command=_show)
    return parser


def _add_deal(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rules",
        default="classic",
        help=f"{', '.join(PRESETS)}, with changes as in classic,deal=8 (classic)",
    )
    command.add_argument("--seed", type=int, default=0, help="0 to 2**64 - 1 (0)")
    command.add_argument("--deal", type=int, default=0, help="number under the seed (0)")


def _replay(options: argparse.Namespace) -> None:
    if options.line is None:
        records = read_records(options.file)
    else:
        records = [read_record(options.file, options.line)]
    for record in records:
        _print_game(record)


def _print_game(record: GameRecord) -> None:
    """Heading, every state with the action that led to it, and the result."""
    print(record.heading)
    actions = ["", *map(action_name, record.actions)]
    for name, game in zip(actions, replay(record), strict=True):
        if name:
            print(f"\n{game.ply}. {name}")
        print(_open(game))
    print(f"\n{record.result}\n")


def _open(game: Game) -> str:
    return text(game.view(0), game.view(1))


def _perft(options: argparse.Namespace) -> None:
    game, depth = _game(options), options.depth
    for reached in range(1, depth + 1) if depth > 0 else (depth,):  # each as soon as it is known
        print(f"{reached:>5} {perft(game, reached)[-1]:>15,}", flush=True)


def _show(options: argparse.Namespace) -> None:
    game = _game(options)
    print(_open(game) if options.seat == "open" else text(game.view(int(options.seat))))


def _game(options: argparse.Namespace) -> Game:
    return Game(RuleSet.from_text(options.rules), options.seed, options.deal)
