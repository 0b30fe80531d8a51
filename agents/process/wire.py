"""What goes through the pipes of an agent's process: views in, actions or a text out.

A request is the arrays of a ``Views`` by name behind a header of JSON; a reply is its kind, its
size, and bytes. Nothing is unpickled: who answers is not trusted.
"""

import json
import struct
from dataclasses import fields
from enum import IntEnum
from io import BufferedIOBase

import numpy as np

from conquian_env import RuleSet, Views

SIZE = struct.Struct("<I")
HEAD = struct.Struct("<BI")
MOST_TEXT = 2000  # bytes of a text that comes back
ARRAYS = tuple(field.name for field in fields(Views) if field.name != "rules")


class Reply(IntEnum):
    """The kinds of replies: READY has the rules as text, ACTIONS int64 [n], the others a text.

    REFUSED is the answer to a spec that names no agent, in ``make_agent``'s own words.
    """

    READY = 0
    ACTIONS = 1
    RAISED = 2
    ILLEGAL = 3
    MEMORY = 4
    REFUSED = 5


def request(views: Views) -> bytes:
    """The views as a message."""
    arrays = {name: getattr(views, name) for name in ARRAYS}
    places = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    header = json.dumps({"rules": views.rules.to_dict(), "arrays": places}).encode()
    bodies = (array.tobytes() for array in arrays.values())
    return b"".join([SIZE.pack(len(header)), header, *bodies])


def read_request(file: BufferedIOBase) -> Views | None:
    """The views of the next message, in arrays that may be written to; None after the last."""
    size = file.read(SIZE.size)
    if len(size) < SIZE.size:
        return None
    header = json.loads(file.read(*SIZE.unpack(size)))
    arrays = {name: np.empty(shape, dtype) for name, dtype, shape in header["arrays"]}
    for array in arrays.values():
        file.readinto(array.reshape(-1).view(np.uint8).data)
    return Views(rules=RuleSet.from_dict(header["rules"]), **arrays)


def reply(kind: Reply, body: bytes) -> bytes:
    """A reply as a message."""
    return HEAD.pack(kind, len(body)) + body


def text_reply(kind: Reply, text: str) -> bytes:
    """A reply of a text, cut to ``MOST_TEXT`` bytes."""
    return reply(kind, text[:MOST_TEXT].encode(errors="replace")[:MOST_TEXT])


def line(body: bytes) -> str:
    """A text that came back, as one line that can be printed."""
    text = body.decode(errors="replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def parse_reply(message: bytes, most: int) -> tuple[Reply, bytes] | None:
    """Kind and body of a reply of at most ``most`` bytes; None while some of it is missing.

    Raises:
        ValueError: this is no reply.
    """
    if len(message) < HEAD.size:
        return None
    kind, size = HEAD.unpack_from(message)
    body = message[HEAD.size :]
    if size > most or len(body) > size:
        raise ValueError(f"{max(size, len(body))} bytes, not at most {most}")
    return (Reply(kind), body) if len(body) == size else None
