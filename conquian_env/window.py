"""A scene as pixels, in an array or in a window; drawn by pygame, which is imported here alone.

It is imported when something is drawn, for it is an extra, takes a while and greets the world.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conquian_env.errors import RenderError
from conquian_env.faces import Polygon, Rect, Shape, Text
from conquian_env.scene import HEIGHT, WIDTH, Card, Scene

_FINE = 2  # drawn so many times larger and then shrunk: pygame's polygons have hard edges


@cache
def _pygame() -> Any:
    """The library itself, untyped: its types would need it to be imported."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame  # noqa: PLC0415  # an extra
        from pygame import Window  # noqa: F401, PLC0415  # which only pygame-ce has
    except ImportError:
        raise RenderError(
            'pictures are drawn by pygame-ce: pip install "conquian-env[render]"'
        ) from None
    pygame.font.init()
    return pygame


# --- the array ---


def rgb_array(scene: Scene) -> NDArray[np.uint8]:
    """The picture as uint8 [720, 1280, 3]; no display is needed.

    Raises:
        RenderError: pygame is not installed.
    """
    pixels: NDArray[np.uint8] = _pygame().surfarray.array3d(_surface(scene))
    return np.ascontiguousarray(pixels.swapaxes(0, 1))


def _surface(scene: Scene) -> Any:
    pygame = _pygame()
    canvas = pygame.Surface((WIDTH * _FINE, HEIGHT * _FINE), depth=32)
    for shape in scene.shapes:
        _draw(canvas, shape)
    return pygame.transform.smoothscale(canvas, (WIDTH, HEIGHT))


def _draw(canvas: Any, shape: Shape | Card, dx: float = 0, dy: float = 0) -> None:
    pygame = _pygame()
    match shape:
        case Card(x, y):
            for part in shape.shapes:
                _draw(canvas, part, x, y)
        case Rect(x, y, width, height, fill, radius):
            box = _fine(x + dx, y + dy, width, height)
            pygame.draw.rect(canvas, fill, box, border_radius=radius * _FINE)
        case Polygon(points, fill):
            pygame.draw.polygon(canvas, fill, [_fine(x + dx, y + dy) for x, y in points])
        case Text(x, y, size, fill, words, centred):
            font = _font(size)
            left, top = _fine(x + dx, y + dy)
            left -= font.size(words)[0] // 2 if centred else 0
            canvas.blit(font.render(words, True, fill), (left, top - font.get_ascent()))


def _fine(*pixels: float) -> list[int]:
    return [round(_FINE * value) for value in pixels]


@cache
def _font(size: int) -> Any:
    pygame = _pygame()
    # By its path: a font asked for as the default comes smaller than its size.
    path = Path(pygame.__file__).with_name(pygame.font.get_default_font())
    return pygame.font.Font(path, size * _FINE)


# --- the window ---


class Window:
    """A window that opens at the first picture; once its user has closed it, nothing is shown."""

    def __init__(self) -> None:
        self._window: Any = None
        self._clock: Any = None
        self._dismissed = False

    def show(self, scene: Scene, fps: float) -> None:
        """Draw the picture, no sooner than 1 / ``fps`` seconds after the last one.

        Raises:
            RenderError: pygame is not installed, or there is no display.
        """
        if self._dismissed:
            return
        pygame = _pygame()
        if self._window is None:
            _start_display()
            self._window = pygame.Window("Conquian", (WIDTH, HEIGHT))
            self._clock = pygame.time.Clock()
        self._window.get_surface().blit(_surface(scene), (0, 0))
        self._window.flip()
        self._clock.tick(fps)
        if any(event.window == self._window for event in pygame.event.get(pygame.WINDOWCLOSE)):
            self.close()
            self._dismissed = True

    def close(self) -> None:
        """Close the window; the next picture opens a new one."""
        if self._window is not None:
            self._window.destroy()
        self._window, self._dismissed = None, False

    def __reduce__(self) -> tuple[type["Window"], tuple[()]]:
        return (Window, ())  # the copy of an environment opens a window of its own


def _start_display() -> None:
    """Start SDL's video; without a display SDL would draw into nothing and not say so."""
    os.environ.setdefault("SDL_NO_SIGNAL_HANDLERS", "1")  # else SIGTERM no longer ends the process
    display = _pygame().display
    try:
        display.init()
    except _pygame().error:
        seen = False
    else:
        seen = display.get_driver() != "offscreen" or "SDL_VIDEODRIVER" in os.environ
    if not seen:
        display.quit()
        raise RenderError(
            'there is no display to open a window on: use render_mode="rgb_array" or "ansi"'
        )
