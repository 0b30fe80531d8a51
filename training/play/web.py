"""A game in the browser: a server on 127.0.0.1 for one person, a page that it gives out.

| request | answer |
| --- | --- |
| ``GET /`` and its parts | the page |
| ``GET /state`` | what it shows, see ``room.Room.state`` |
| ``POST /decide`` | the state after that |
| ``GET /record``, ``/replay`` | the game when it is over: its record, a page that replays it |

What is posted is JSON, ``{"version": of the state that the page shows, "what": …}`` as
``room.Room.decide`` has it.
What is refused is answered with ``{"error": why}``, and changes nothing.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from threading import Thread
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import HTTPException
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from conquian_env import viewer
from conquian_env.errors import ConquianError, OptionError
from training.play.room import Room, StaleError
from training.play.session import Session

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HOST = "127.0.0.1"
LONGEST = 1000  # bytes of a request
OWN = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
PAGE_POLICY = OWN + (
    "script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src 'self'; "
    "img-src data:"
)
REPLAY_POLICY = OWN + "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
PARTS = {  # whether it is the viewer's, its file and kind
    "/": (False, "play.html", "text/html"),
    "/play.js": (False, "play.js", "text/javascript"),
    "/play.css": (False, "play.css", "text/css"),
    "/table.js": (True, "table.js", "text/javascript"),
    "/table.css": (True, "table.css", "text/css"),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Refused(Exception):  # noqa: N818  # as HTTPException, an answer rather than a failure
    """A request that is not done.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing of a page that asks each second."""


def listen(port: int) -> socket.socket:
    """The socket of a server for this machine alone; port 0 is any free one.

    Raises:
        OptionError: the port cannot be had.
    """
    if not 0 <= port < 1 << 16:
        raise OptionError(f"port must be 0 to 65535, not {port}")
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((HOST, port))
        server.listen()
    except OSError as error:
        server.close()
        raise OptionError(f"port {port}: {error.strerror}") from None
    return server


@contextmanager
def serving(room: Room, server: socket.socket) -> Iterator[str]:
    """Answer meanwhile, from other threads, at the address that is given.

    ``room.run`` must run for decisions to be made.
    """
    port = server.getsockname()[1]
    names = {f"{name}:{port}" for name in (HOST, "localhost")}
    answers = application(room, names)
    web = make_server(
        HOST, port, answers, threaded=True, request_handler=_Handler, fd=server.fileno()
    )
    thread = Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{port}/"
    finally:
        web.shutdown()
        thread.join()


def application(room: Room, hosts: set[str]) -> "WSGIApplication":
    """The server's answers, to those who call it by one of its names."""

    @Request.application
    def answer(request: Request) -> Response:
        try:
            _check_sender(request, hosts)
            response = _answer(room, request)
        except Refused as refused:
            response = _json({"error": str(refused)}, refused.status)
        except HTTPException as error:  # of werkzeug: a body that is too long, say
            response = _json({"error": error.description}, error.code or 400)
        response.headers.extend(HEADERS)
        return response

    return answer


def _check_sender(request: Request, hosts: set[str]) -> None:
    """Refuse a page of another site, also one whose name was made to lead here."""
    if request.environ.get("HTTP_HOST") not in hosts:
        raise Refused(403, "this server is called by another name")
    if request.origin is not None and request.origin not in {f"http://{host}" for host in hosts}:
        raise Refused(403, "this was sent by a page of another site")


def _answer(room: Room, request: Request) -> Response:
    done = (request.method, request.path)
    if done == ("POST", "/decide"):
        return _decide(room, request)
    if done == ("GET", "/record"):
        return _record(_ended(room))
    if done == ("GET", "/replay"):
        return _text(viewer.to_html([_ended(room).record()]), "text/html", REPLAY_POLICY)
    if done == ("GET", "/state"):
        return _text(room.state, "application/json")
    if request.method == "GET" and request.path in PARTS:
        text, kind = _part(request.path)
        return _text(text, kind, PAGE_POLICY)
    raise Refused(404, f"there is no {request.method} {request.path}")


def _decide(room: Room, request: Request) -> Response:
    if request.mimetype != "application/json":  # what a form of another site cannot send
        raise Refused(415, "application/json is expected")
    request.max_content_length = LONGEST
    try:
        values = json.loads(request.get_data())
        version, what = values["version"], values["what"]
    except (ValueError, TypeError, LookupError, RecursionError):
        raise Refused(400, "version and what are expected, as JSON") from None
    try:
        room.decide(version, what)
    except ConquianError as error:
        raise Refused(409 if isinstance(error, StaleError) else 400, str(error)) from None
    return _text(room.state, "application/json")


def _ended(room: Room) -> Session:
    session = room.session
    if not session.over:
        raise Refused(403, "the game is not over")
    return session


def _record(session: Session) -> Response:
    """The record of a game, as a file."""
    response = _text(session.record().to_json() + "\n", "application/jsonl")
    response.headers["Content-Disposition"] = "attachment; filename=game.jsonl"
    return response


def _text(text: str, kind: str, policy: str = OWN) -> Response:
    response = Response(text, mimetype=kind)
    response.headers["Content-Security-Policy"] = policy
    return response


def _json(values: dict[str, Any], status: int) -> Response:
    return Response(json.dumps(values), status, mimetype="application/json")


@cache
def _part(path: str) -> tuple[str, str]:
    """The text of a part of the page, and its kind."""
    shared, name, kind = PARTS[path]
    if shared:
        return viewer.asset(name), kind
    own = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return own.replace("{sprite}", viewer.sprite()), kind
