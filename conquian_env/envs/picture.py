"""How an environment shows its game: as text, as pixels or in a window."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from conquian_env.envs.options import check_option
from conquian_env.game import Game
from conquian_env.render import text
from conquian_env.scene import scene
from conquian_env.view import View
from conquian_env.window import Window, rgb_array

Perspective = Literal["actor", "open", 0, 1]
RenderMode = Literal["ansi", "rgb_array", "human"]


class Picture:
    """What ``render_mode`` and ``perspective`` of an environment ask for.

    Raises:
        OptionError: an argument is out of range.
        RenderError: when it comes to drawing, pygame or a display for the window is missing.
    """

    def __init__(self, mode: RenderMode | None, perspective: Perspective, fps: int) -> None:
        check_option("render_mode", mode, (None, *get_args(RenderMode)))
        check_option("perspective", perspective, get_args(Perspective))
        self.mode, self.perspective, self.fps = mode, perspective, fps
        self._window = Window()

    def draw(self, game: Game, note: str, actor: int) -> str | NDArray[np.uint8] | None:
        """Text in mode ``ansi``, uint8 [720, 1280, 3] in ``rgb_array``, None otherwise.

        ``actor`` is the seat that perspective ``actor`` stands for.
        """
        if self.mode == "rgb_array":
            return rgb_array(scene(*self._seen(game, actor), note=note))
        if self.mode == "ansi":
            return "\n".join(filter(None, (text(*self._seen(game, actor)), note)))
        return None

    def follow(self, game: Game, note: str, actor: int) -> None:
        """Show the game in the window of mode ``human``; called at every step."""
        if self.mode == "human":
            self._window.show(scene(*self._seen(game, actor), note=note), self.fps)

    def close(self) -> None:
        """Close the window."""
        self._window.close()

    def _seen(self, game: Game, actor: int) -> tuple[View, View | None]:
        """The view to draw, and the other one if both hands are open."""
        if self.perspective == "open":
            return game.view(0), game.view(1)
        return game.view(actor if self.perspective == "actor" else self.perspective), None
