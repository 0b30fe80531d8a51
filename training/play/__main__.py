"""Play against an agent: ``python -m training.play --against expert``.

The game goes to the file of records when it is over, and as far as it was played when it is broken
off. The exit status is 0 after a game and after ``quit`` or the end of input, 130 after Ctrl-C, 1
when the agent failed or the game could not be saved, and 2 for wrong options; with ``--web`` Ctrl-C
is the end that is expected, and the status 0 unless the last game could not be saved.
"""

import argparse
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import FrameType

import numpy as np

from agents import make_agent
from conquian_env import RuleSet
from conquian_env.deal import check_deal, seed_bits
from conquian_env.errors import ConquianError, OptionError
from conquian_env.seeds import derive
from training.backends import Limits, is_ours
from training.command import handling
from training.match import check_plays
from training.play import terminal
from training.play.session import Named, Session, Setting

ENDINGS = signal.SIGTERM, signal.SIGHUP  # to be told to end, and a terminal that is closed
LIMITS = Limits(move_seconds=60.0)  # of a foreign agent: a person can press Ctrl-C


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    with ExitStack() as stack:
        try:
            sessions = deals(_setting(options, stack), options.seat, options.seed, options.deal)
            server = _listen(options.port or 0) if options.web else None
        except (ConquianError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
        if server is None:
            return _play(next(sessions))
        return _serve(sessions, stack.enter_context(server))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.play", description=__doc__)
    parser.add_argument("--against", default="expert", metavar="SPEC", help="agent (expert)")
    parser.add_argument("--seat", choices=("0", "1", "random"), default="random", help="yours")
    parser.add_argument("--rules", default="classic", help="preset, also with changes (classic)")
    parser.add_argument("--seed", type=int, help="of the cards (a new one for each game)")
    parser.add_argument("--deal", type=int, help="number of the first deal under --seed (0)")
    parser.add_argument(
        "--out", type=Path, default=Path("games.jsonl"), help="records (%(default)s)"
    )
    parser.add_argument(
        "--hints", metavar="SPEC", help="who gives hints, or none (the opponent, or expert)"
    )
    parser.add_argument("--web", action="store_true", help="play in the browser")
    parser.add_argument("--port", type=int, help="of --web (any free one)")
    parser.add_argument("--undo", action="store_true", help="choices may be taken back")
    return parser


def _setting(options: argparse.Namespace, stack: ExitStack) -> Setting:
    """What the options ask for; agents in processes of their own are closed by ``stack``."""
    if options.deal is not None and options.seed is None:
        raise OptionError("--deal needs --seed: without one, every game has a new seed")
    if options.port is not None and not options.web:
        raise OptionError("--port is of --web")
    seed_bits(options.seed or 0)
    check_deal(options.deal or 0)
    check_file(options.out)
    rules = RuleSet.from_text(options.rules)
    opponent = _agent(options.against, rules, stack)
    adviser: Named | None = opponent
    if options.hints == "none":
        adviser = None
    elif options.hints is not None or not is_ours(options.against):
        adviser = _agent(options.hints or "expert", rules, stack)
    return Setting(opponent, adviser, rules, options.out, options.undo)


def _agent(spec: str, rules: RuleSet, stack: ExitStack) -> Named:
    """An agent; one that is not ours plays in a process of its own."""
    agent = make_agent(spec) if is_ours(spec) else stack.enter_context(LIMITS.agent(spec))
    check_plays(spec, agent, rules)
    return Named(spec, agent)


def check_file(path: Path) -> None:
    """Refuse a file that no record can be added to.

    Raises:
        OptionError: it is a folder, cannot be written, or has no folder to be in.
    """
    if path.is_dir():
        raise OptionError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise OptionError(f"{path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OptionError(f"{path} cannot be written")


def deals(setting: Setting, seat: str, seed: int | None, deal: int | None) -> Iterator[Session]:
    """One game after the other: deal after deal of a seed, or each of a new one.

    A person who has seen the record of one game knows its seed, so that the next has another,
    unless it was the person who named it.
    """
    for number in count(deal or 0):
        cards = (secrets.randbits(64), 0) if seed is None else (seed, number)
        drawn = int(derive("seat", cards[0], np.array([cards[1]]), np.zeros(1, np.int64))[0]) & 1
        yield Session(setting, *cards, drawn if seat == "random" else int(seat))


def _play(session: Session) -> int:
    """A game in the terminal, saved however it ends."""
    status = 0
    interrupt = handling([signal.SIGINT], signal.default_int_handler)
    with handling(ENDINGS, _stop), interrupt, _waking():
        try:
            terminal.play(session)
        except KeyboardInterrupt:
            status = 130
            print()
        except SystemExit as stop:  # a signal
            status = int(stop.code or 0)
        finally:
            saved = keep(session)
    return status or int(not saved or bool(session.failure))


def _listen(port: int) -> socket.socket:
    """The socket of the server, before anything is played."""
    if find_spec("werkzeug") is None:
        raise OptionError("--web needs the extra: pip install conquian-env[play]")
    from training.play.web import listen  # noqa: PLC0415  # an extra

    return listen(port)


def _serve(sessions: Iterator[Session], server: socket.socket) -> int:
    """Games in the browser until Ctrl-C; one that is not over then is saved as far as it came."""
    from training.play.room import Room  # noqa: PLC0415  # an extra
    from training.play.web import serving  # noqa: PLC0415

    status = 0
    with handling(ENDINGS, _stop), handling([signal.SIGINT], signal.default_int_handler):
        try:
            games = Room(sessions)
        except KeyboardInterrupt:
            return 130
        try:
            with serving(games, server) as address:
                print(f"play at {address} (Ctrl-C stops the server)", flush=True)
                games.run()
        except KeyboardInterrupt:
            print()
        except SystemExit as stop:  # a signal
            status = int(stop.code or 0)
        finally:
            saved = keep(games.session)
    return status or int(not saved)


def keep(session: Session) -> bool:
    """Save a game and say where it is; whether it is not lost."""
    path = session.setting.out
    try:
        with handling((signal.SIGINT, *ENDINGS), signal.SIG_IGN):
            line = session.save()
    except OSError as error:
        print(f"error: the game could not be saved: {error}; its record:", file=sys.stderr)
        print(session.record().to_json(), file=sys.stderr)
        return False
    if line is None:
        print("nothing was played, nothing is saved")
        return True
    print(f"seed {session.seed}, deal {session.deal}")
    print(f"saved: {path}, line {line}")
    show = f"python -m conquian_env show {shlex.quote(str(path))}"
    print(f"look at it: {show} --line {line} --html game.html")
    return True


@contextmanager
def _waking() -> Iterator[None]:
    """Wake a read each second: a signal that came just before it is seen then, not after a line."""
    with handling([signal.SIGALRM], lambda number, frame: None):
        signal.setitimer(signal.ITIMER_REAL, 1, 1)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
