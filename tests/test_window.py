"""Pixels: the array, the window, and what is said when either cannot be had.

``python -m tests.test_window`` draws the pictures of the documentation anew.
"""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pygame
import pytest

from conquian_env import Game, RuleSet, conquian_v0
from conquian_env.errors import RenderError
from conquian_env.faces import Text, text_width
from conquian_env.scene import FELT, HEIGHT, WIDTH, Scene, scene
from conquian_env.window import _FINE, Window, _font, rgb_array
from tests.playing import playthroughs
from tests.test_scene import RULES, box, scenes

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FAST = 10_000  # pictures a second


def busiest(wanted: Callable[[Game], bool]) -> Game:
    """Of some games, the wanted state with most cards out of hand."""
    states = [game for game in playthroughs("classic", 60, seed=2) if wanted(game)]
    return max(states, key=lambda game: -len(game.hand(0)) - len(game.hand(1)))


def smaller_hand(game: Game) -> int:
    return min(len(game.hand(0)), len(game.hand(1)))


def being_laid(game: Game) -> bool:
    return game.phase == "meld" and game.melds(game.actor) is None and smaller_hand(game) > 2


def samples() -> dict[str, Scene]:
    """The pictures of the documentation."""
    start, laid = Game("classic", seed=9), busiest(being_laid)
    forced = busiest(lambda game: game.phase == "force" and len(game.hand(game.actor)) > 2)
    over = busiest(lambda game: game.returns()[0] > 0 and len(game.hand(1)) > 2)
    return {
        "start": scene(start.view(0)),
        "meld": scene(laid.view(laid.actor)),
        "force": scene(forced.view(forced.actor), forced.view(1 - forced.actor)),
        "end": scene(over.view(0), over.view(1)),
    }


# --- the array ---


def colour(text: str) -> list[int]:
    return list(bytes.fromhex(text[1:]))


@pytest.mark.parametrize("name", ["start", "meld", "force", "end"])
def test_the_array_is_the_scene(name: str) -> None:
    picture = samples()[name]
    pixels = rgb_array(picture)
    assert (pixels.shape, pixels.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
    assert pixels.flags.c_contiguous
    assert pixels[2, 2].tolist() == colour(FELT)
    for shape in picture.shapes[1:]:  # each leaves its mark in its own place
        left, top, right, bottom = map(round, box(shape))
        assert len(np.unique(pixels[top : bottom + 1, left : right + 1].reshape(-1, 3), axis=0)) > 1
    assert np.array_equal(rgb_array(picture), pixels)


def test_the_documentation_has_the_pictures() -> None:
    for name in samples():
        assert pygame.image.load(IMAGES / f"{name}.png").get_size() == (WIDTH, HEIGHT)


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_no_text_is_wider_than_the_layout_thinks(rules: RuleSet) -> None:
    rgb_array(Scene("", ()))
    shapes = {shape for _, _, picture in scenes(rules) for shape in picture.shapes}
    for text in (shape for shape in shapes if isinstance(shape, Text)):
        assert _font(text.size).size(text.words)[0] / _FINE <= text_width(text.words, text.size)


def test_an_environment_gives_arrays_of_what_its_perspective_sees() -> None:
    for perspective in (0, 1, "open", "actor"):
        env = conquian_v0.raw_env(render_mode="rgb_array", perspective=perspective)
        env.reset(seed=4)
        views = [env.game.view(0), env.game.view(1)]
        seen = {0: views[:1], 1: views[1:], "open": views, "actor": views[:1]}[perspective]
        assert np.array_equal(env.render(), rgb_array(scene(*seen)))
        env.step(env.game.legal_actions()[0])
        env.forfeit("player_1")
        note = "player_1 chose an illegal action and loses"
        seen = {0: (0,), 1: (1,), "open": (0, 1), "actor": (env.game.actor,)}[perspective]
        views = [env.game.view(seat) for seat in seen]
        assert np.array_equal(env.render(), rgb_array(scene(*views, note=note)))


# --- the window ---


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A display that shows nothing."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


def human(**options) -> conquian_v0.raw_env:
    env = conquian_v0.raw_env(render_mode="human", **options)
    env.metadata = env.metadata | {"render_fps": FAST}
    return env


def in_window(window: Window) -> np.ndarray:
    return pygame.surfarray.array3d(window._window.get_surface()).swapaxes(0, 1)


@pytest.mark.usefixtures("display")
def test_human_mode_follows_a_game_to_its_end_and_closes() -> None:
    env = human(perspective="open")
    env.reset(seed=0)
    for _ in range(2):
        while not env.game.is_over:
            env.step(env.game.legal_actions()[-1])
        assert env.render() is None
        last = rgb_array(scene(env.game.view(0), env.game.view(1)))
        assert np.array_equal(in_window(env._picture._window), last)
        env.close()
        assert env._picture._window._window is None
        env.reset()
    env.close()
    env.close()


@pytest.mark.usefixtures("display")
def test_a_closed_window_does_not_end_the_game() -> None:
    env = human()
    env.reset(seed=0)
    window = env._picture._window._window
    pygame.event.post(pygame.event.Event(pygame.WINDOWCLOSE, window=window))
    while not env.game.is_over:
        env.step(env.game.legal_actions()[-1])
        assert env._picture._window._window is None
    env.reset()
    assert env._picture._window._window is None
    env.close()
    env.reset()
    assert env._picture._window._window is not None
    env.close()


@pytest.mark.usefixtures("display")
def test_two_windows_are_two() -> None:
    first, second = human(), human()
    first.reset(seed=1)
    second.reset(seed=2)
    first.close()
    second.step(second.game.legal_actions()[0])
    assert np.array_equal(
        in_window(second._picture._window), rgb_array(scene(second.game.view(second.game.actor)))
    )
    second.close()


@pytest.mark.usefixtures("display")
def test_pictures_follow_each_other_no_faster_than_asked() -> None:
    window, picture = Window(), scene(Game().view(0))
    start = pygame.time.get_ticks()
    for _ in range(3):
        window.show(picture, fps=20)
    assert pygame.time.get_ticks() - start >= 3 * 50 - 5
    window.close()


@pytest.mark.usefixtures("display")
def test_a_copy_opens_a_window_of_its_own() -> None:
    env = human()
    env.reset(seed=3)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin._picture._window._window is None
        twin.step(twin.game.legal_actions()[0])
        assert twin._picture._window._window is not env._picture._window._window
        twin.close()
    assert env._picture._window._window is not None
    env.close()


# --- in a process of its own ---


def run(code: str, **environment: str) -> str:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "PYGAME_HIDE_SUPPORT_PROMPT")
    clean = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + "".join(done.stderr.splitlines()[-1:] if done.returncode else [])


SHOW = """
from conquian_env import conquian_v0
env = conquian_v0.env(render_mode="{}")
env.reset(seed=0)
print(env.render() is not None)
"""


def test_an_array_needs_no_display_and_greets_nobody() -> None:
    assert run(SHOW.format("rgb_array")) == "True\n"


def test_a_window_without_a_display_is_one_clear_error() -> None:
    assert run(SHOW.format("human")) == (
        "conquian_env.errors.RenderError: there is no display to open a window on: "
        'use render_mode="rgb_array" or "ansi"'
    )


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
def test_without_pygame_the_extra_is_named(mode: str) -> None:
    assert run("import sys; sys.modules['pygame'] = None" + SHOW.format(mode)) == (
        "conquian_env.errors.RenderError: pictures are drawn by pygame-ce: "
        'pip install "conquian-env[render]"'
    )


def test_nothing_imports_pygame_before_it_draws() -> None:
    code = SHOW.format("ansi") + "import sys; print('pygame' in sys.modules)"
    assert run(code) == "True\nFalse\n"


def test_a_window_does_not_keep_the_process_from_being_ended() -> None:
    code = SHOW.format("human") + "import os, signal; os.kill(os.getpid(), signal.SIGTERM); 1 / 0"
    assert "ZeroDivisionError" not in run(code + "\n", SDL_VIDEODRIVER="dummy")


def test_what_cannot_be_drawn_is_an_error_of_this_package() -> None:
    assert issubclass(RenderError, RuntimeError)


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, picture in samples().items():
        surface = pygame.surfarray.make_surface(rgb_array(picture).swapaxes(0, 1))
        pygame.image.save(surface, IMAGES / f"{name}.png")
