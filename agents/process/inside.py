"""What runs in an agent's process: ``python -m agents.process.inside REQUESTS REPLIES SPEC``."""

import re
import sys
import traceback
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from agents.agent import Agent, AgentError
from agents.process.wire import Reply, read_request, reply, text_reply
from agents.registry import make_agent
from conquian_env import RuleSet, Views
from conquian_env.errors import IllegalActionError
from conquian_env.view import legal_choices

# Torch and operating systems have no type of their own for it.
NO_MEMORY = re.compile(r"can(no|')t allocate memory|out of memory|bad_alloc", re.IGNORECASE)


def main(arguments: list[str]) -> None:
    """Make the agent, then answer until there are no more requests."""
    requests, replies, spec = int(arguments[0]), int(arguments[1]), arguments[2]
    with open(requests, "rb") as reading, open(replies, "wb") as writing:
        try:
            agent = make_agent(spec)
        except AgentError as error:
            writing.write(text_reply(Reply.REFUSED, str(error).removeprefix(f"agent {spec!r}: ")))
            return
        except Exception as error:
            writing.write(_raised(error))
            return
        writing.write(reply(Reply.READY, _rules(agent)))
        writing.flush()
        while (views := read_request(reading)) is not None:
            writing.write(_answer(spec, agent, views))
            writing.flush()


def _rules(agent: Agent) -> bytes:
    rules = getattr(agent, "rules", None)
    return rules.to_text().encode() if isinstance(rules, RuleSet) else b""


def _answer(spec: str, agent: Agent, views: Views) -> bytes:
    """The reply to a request; ``SystemExit`` ends the process as it does elsewhere."""
    mask = views.mask.copy()  # the agent's own may be written to
    try:
        chosen = agent.act(views)
    except SystemExit:
        raise
    except BaseException as error:
        return _raised(error)
    try:
        return reply(Reply.ACTIONS, _integers(spec, chosen, mask).tobytes())
    except IllegalActionError as error:
        return text_reply(Reply.ILLEGAL, str(error))
    except Exception as error:
        return _raised(error)


def _integers(spec: str, chosen: object, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What was chosen, int64 [n], legal or not: that is judged outside."""
    if (
        isinstance(chosen, np.ndarray)
        and chosen.shape == (len(mask),)
        and chosen.dtype.kind in "iu"
    ):
        return chosen.astype(np.int64)
    return legal_choices(f"agent {spec}", chosen, mask)


def _raised(error: BaseException) -> bytes:
    """The reply to say so; the traceback goes to the log."""
    if isinstance(error, MemoryError):  # lets go of what fills the memory before it needs some
        error.__traceback__ = error.__context__ = None
    try:
        text = repr(error)
    except Exception:
        text = type(error).__name__
    if isinstance(error, MemoryError) or NO_MEMORY.search(text):
        return text_reply(Reply.MEMORY, text)
    with suppress(Exception):
        traceback.print_exception(error)
    return text_reply(Reply.RAISED, text)


if __name__ == "__main__":
    main(sys.argv[1:])
