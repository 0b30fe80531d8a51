"""Pictures of pages for the documentation: ``python -m tests.screenshots`` takes them anew."""

from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
from PIL import Image

from agents import make_agent
from conquian_env import Game, GameRecord, RuleSet, parse_action
from conquian_env.seeds import derive
from conquian_env.viewer import to_html
from tests.chromium import launched
from training.analyse import Analyst
from training.play.room import Room
from training.play.session import Named, Session, Setting
from training.play.web import listen, serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"

ADVISER = "ppo:baseline,sample=true"
CHOICES = (
    *("take", "lay 7D", "lay 6D", "discard KH", "take", "lay 4H", "lay 3H", "discard 5C"),
    *("pass", "pass", "discard QD", "pass"),
)


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


def game(browser: Any, folder: Path) -> None:
    """The page of ``training.play --web``: a game against expert in mid-play, with a hint."""
    opponent, adviser = (Named(spec, make_agent(spec)) for spec in ("expert", ADVISER))
    rules, out = RuleSet.preset("classic"), folder / "games.jsonl"
    setting = Setting(opponent, adviser, rules, out, undo=True)
    room = Room(iter([Session(setting, seed=25, deal=0, seat=1)]))
    Thread(target=room.run, daemon=True).start()
    with serving(room, listen(0)) as address:
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto(address)
        for choice in CHOICES:
            tab.locator(f"[data-action='{parse_action(choice)}']").click()
            tab.wait_for_selector("body:not(.busy)")
        tab.get_by_role("button", name="Hint").click()
        tab.wait_for_selector("#advice li")
        save(tab, IMAGES / "play.png")
        tab.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder, launched() as chromium:
        replays(chromium, Path(folder))
        game(chromium, Path(folder))
