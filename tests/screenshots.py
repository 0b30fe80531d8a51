"""Pictures of pages for the documentation: ``python -m tests.screenshots`` takes them anew."""

from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from agents import make_agent
from conquian_env import Game, GameRecord
from conquian_env.seeds import derive
from conquian_env.viewer import to_html
from tests.chromium import launched
from training.analyse import Analyst

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def played_by(names: tuple[str, str], seed: int) -> GameRecord:
    """A game between two agents."""
    agents, start = [make_agent(name) for name in names], Game("classic", seed=seed)
    game, actions = start.copy(), []
    while not game.is_over:
        seeds = derive("picture", seed, np.array([game.ply]), np.array([game.actor]))
        actions.append(int(agents[game.actor].act(game.views(seeds))[0]))
        game.apply(actions[-1])
    return GameRecord.of(start, actions, names)


def save(page: Any, path: Path) -> None:
    """What the window shows, in a palette, which halves the file."""
    with Image.open(BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(192).save(path, optimize=True)


def replays(browser: Any, folder: Path) -> None:
    """An analysed game: on a wide screen with a mistake to come, on a narrow one as a seat sees."""
    names = ("greedy", "expert")
    played = Analyst(worlds=20, agents=names).annotate(played_by(names, seed=2))
    page = folder / "page.html"
    page.write_text(to_html([played]), encoding="utf-8")
    for name, width, height, position in (
        ("replay", 1280, 800, "#1/22/open"),
        ("replay-narrow", 390, 920, "#1/22/0"),
    ):
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto(page.as_uri() + position)
        save(tab, IMAGES / f"{name}.png")
        tab.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder, launched() as chromium:
        replays(chromium, Path(folder))
