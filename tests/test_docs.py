"""The pages in docs/ say what the code says, their snippets run, and links lead somewhere.

``python -m tests.test_docs`` writes the tables in them anew.
"""

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import gymnasium
import numpy as np
import pytest
from pettingzoo.env_registry.registration import aec_registry

import training.ledger
import training.report
import training.run
from agents import checkpoint
from agents.network import NetworkConfig
from conquian_env import Batch, Views, __version__, action_name, conquian_v0, openspiel, record
from conquian_env.actions import DISCARD, FORCE, GAVE, LAY, NUM_ACTIONS, PASS, SEAT_FLAG, TAKE, TURN
from conquian_env.cards import NUM_RANKS, NUM_SUITS, card_name
from conquian_env.envs.aec import raw_env
from conquian_env.envs.single import ConquianEnv
from conquian_env.envs.vector import ConquianVectorEnv
from conquian_env.game import JSON_FORMAT
from conquian_env.observation import (
    HIDDEN_PIECES,
    LAYOUT,
    NO_EVENT,
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    PIECES,
    Encoding,
    highs,
    planes,
)
from training import benchmark
from training.config import Config, EvaluationConfig, PoolConfig, PPOConfig
from training.ppo import Losses
from training.train import METRICS

TABLE_PAGES = [
    Path(f"docs/{name}.md") for name in ("environments", "training", "versions", "agents")
]
PAGES = [*map(Path, ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "conquian_env/RULES.md"))]
PAGES += sorted(Path("docs").rglob("*.md"))
ELSEWHERE = {"README.md": "test_readme", "docs/recipes.md": "test_recipes"}  # run their snippets
BLOCK = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


# --- the tables ---


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown; the head's cells stand between bars, a colon after one aligns right."""
    names = head.split(" | ")
    rule = ["---:" if name.endswith(":") else "---" for name in names]
    lines = [[name.removesuffix(":") for name in names], rule, *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def span(first: int, size: int) -> str:
    """The places from ``first`` on."""
    return str(first) if size == 1 else f"{first}–{first + size - 1}"


def card_table() -> str:
    ranks = [card_name(rank)[:-1] for rank in range(NUM_RANKS)]
    rows = (
        [card_name(NUM_RANKS * suit)[-1], *range(NUM_RANKS * suit, NUM_RANKS * (suit + 1))]
        for suit in range(NUM_SUITS)
    )
    return table(" | ".join(["", *(f"{rank}:" for rank in ranks)]), rows)


def action_table() -> str:
    meanings = {
        PASS: "pass the card on, decline it, or do not insist",
        TAKE: "put the face-up card on the own table; lays follow, then a discard or the win",
        FORCE: "insist that the other seat takes the card it refused",
        LAY: f"put card c = id - {LAY} from the hand on the own table",
        DISCARD: f"discard card c = id - {DISCARD}; in phase `give`, give it to the other seat",
    }
    ends = [*list(meanings)[1:], NUM_ACTIONS]
    rows = []
    for (first, meaning), end in zip(meanings.items(), ends, strict=True):
        names = [f"`{action_name(action)}`" for action in sorted({first, end - 1})]
        rows.append([span(first, end - first), " to ".join(names), meaning])
    return table("id | name | what it does", rows)


def encoding_table() -> str:
    meanings = {
        "flat": "the pieces below, one after the other",
        "planes": "the same as channels on the grid of suits and ranks, a number as a constant",
        "history": "`flat`, then the public events of the deal so far",
    }
    rows = ([f"`{e}`", f"uint8 {list(highs(e).shape)}", meanings[e]] for e in get_args(Encoding))
    return table("encoding | array | what it holds", rows)


def channels(name: str) -> str:
    """Where a piece is in ``planes``."""
    flat = np.zeros(OBSERVATION_SIZE, np.uint8)
    flat[LAYOUT[name]] = 1
    found = planes(flat).any((1, 2)).nonzero()[0].tolist()
    assert found == list(range(found[0], found[-1] + 1))
    return span(found[0], len(found))


def observation_table() -> str:
    rows = (
        [span(LAYOUT[p.name].start, p.size), channels(p.name), f"`{p.name}`", p.high, p.meaning]
        for p in PIECES
    )
    return table("flat: | planes: | piece | highest: | meaning", rows)


def event_table() -> str:
    return table(
        "byte | event",
        [
            [span(0, NUM_ACTIONS), "the action of that id"],
            [span(TURN, GAVE - TURN), f"card c = byte - {TURN} is turned"],
            [GAVE, "a gift that the observer does not know"],
            [f"+{SEAT_FLAG}", "the same by the other seat"],
            [NO_EVENT, "none, after the last"],
        ],
    )


def state_table() -> str:
    rows, start = [[span(0, OBSERVATION_SIZE), "", "", "the observation, `flat`"]], OBSERVATION_SIZE
    for piece in HIDDEN_PIECES:
        rows.append([span(start, piece.size), f"`{piece.name}`", str(piece.high), piece.meaning])
        start += piece.size
    return table("place: | piece | highest: | meaning", rows)


def entries(text: str, heading: str) -> dict[str, str]:
    """The entries of a section of a docstring: names, and the text after the colon."""
    section = re.search(rf"^{heading}:\n((?:    .+\n)+)", text + "\n", re.MULTILINE)
    assert section, heading
    parts = [" ".join(part.split()) for part in re.split(r"^    (?=\S)", section[1], flags=re.M)]
    found = dict(part.split(": ", 1) for part in parts if part)
    return {names: text.replace("``", "`").replace("|", r"\|") for names, text in found.items()}


def defaults(made: type) -> dict[str, Any]:
    return {name: one.default for name, one in inspect.signature(made).parameters.items()}


def default_text(value: object) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    value = value.value if isinstance(value, Enum) else value
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def argument_table(documented: dict[str, str], values: dict[str, Any]) -> str:
    """A row an entry; several names in one are arguments of another environment."""
    rows = []
    for names, meaning in documented.items():
        name, *more = names.split(", ")
        shown = "the same" if more else default_text(values[name])
        rows.append([", ".join(f"`{one}`" for one in (name, *more)), shown, meaning])
    return table("argument | default | meaning", rows)


def arguments(made: type) -> Callable[[], str]:
    return lambda: argument_table(entries(inspect.getdoc(made) or "", "Args"), defaults(made))


def parameters() -> str:
    found = entries(inspect.getdoc(openspiel) or "", "Parameters of the game")
    return argument_table(found, openspiel.DEFAULTS)


def toml(value: object) -> str:
    """A value as a configuration has it."""
    if value is inspect.Parameter.empty:
        return "required"
    return f"`{json.dumps(value)}`"


def keys(made: type) -> Callable[[], str]:
    """The keys of a table of a configuration."""

    def rows() -> str:
        documented = entries(inspect.getdoc(made) or "", "Attributes")
        tables = {names for names in documented if ", " in names}
        single = {name: text for name, text in documented.items() if name not in tables}
        rows = [[f"`{name}`", toml(defaults(made)[name]), text] for name, text in single.items()]
        return table("key | default | meaning", rows)

    return rows


def metric_table() -> str:
    losses = entries(inspect.getdoc(Losses) or "", "Attributes")
    meanings = {
        f"losses/{name}": meaning for names, meaning in losses.items() for name in names.split(", ")
    }
    shown = ([f"`{name}`", meanings.get(name, meaning)] for name, meaning in METRICS.items())
    return table("metric | meaning", shown)


def version_table() -> str:
    """What has a version of its own, and where it is in the code."""
    assert conquian_v0.env  # its import registers
    environments = [name for name in gymnasium.registry if name.startswith("Conquian-")]
    environments += [name for name in aec_registry if name.startswith("conquian/")]
    rows = [
        ("package", __version__, "conquian_env/version.py"),
        ("environments", "`, `".join(environments), "conquian_env/conquian_v0.py"),
        (
            "observation",
            f"OBSERVATION_VERSION = {OBSERVATION_VERSION}",
            "conquian_env/observation.py",
        ),
        ("saved game", JSON_FORMAT, "conquian_env/game.py"),
        ("record", record.FORMAT, "conquian_env/record.py"),
        ("checkpoint", checkpoint.FORMAT, "agents/checkpoint.py"),
        ("state of a run", training.run.FORMAT, "training/run.py"),
        ("ledger of a tournament", training.ledger.FORMAT, "training/ledger.py"),
        ("`tournament.json`", training.report.FORMAT, "training/report.py"),
        ("benchmark and score card", benchmark.VERSION, "training/benchmark.py"),
    ]
    return table(
        "version of | now | in",
        ([what, f"`{now}`", f"[{path}](../{path})"] for what, now, path in rows),
    )


def views_table() -> str:
    views = Batch(1, "classic").views(np.arange(1), np.zeros(1, np.uint64))
    rows = []
    for names, text in entries(inspect.getdoc(Views) or "", "Attributes").items():
        kind, _, meaning = text.partition(": ")
        for name in names.split(", "):
            if isinstance(array := getattr(views, name), np.ndarray):
                sizes = ", ".join(["n", *map(str, array.shape[1:])])
                assert kind == f"{array.dtype} [{sizes}]", name
            rows.append([f"`{name}`", kind, meaning.rstrip(".")])
    assert [row[0] for row in rows] == [f"`{field.name}`" for field in fields(Views)]
    return table("field | array | what it holds", rows)


TABLES: dict[str, Callable[[], str]] = {
    "cards": card_table,
    "actions": action_table,
    "encodings": encoding_table,
    "observation": observation_table,
    "events": event_table,
    "state": state_table,
    "raw_env": arguments(raw_env),
    "ConquianEnv": arguments(ConquianEnv),
    "ConquianVectorEnv": arguments(ConquianVectorEnv),
    "Batch": arguments(Batch),
    "python_conquian": parameters,
    "Config": keys(Config),
    "PPOConfig": keys(PPOConfig),
    "NetworkConfig": keys(NetworkConfig),
    "PoolConfig": keys(PoolConfig),
    "EvaluationConfig": keys(EvaluationConfig),
    "metrics": metric_table,
    "versions": version_table,
    "Views": views_table,
}


def written_anew(text: str) -> str:
    """The page with every table as the code has it now."""
    return BLOCK.sub(lambda block: block[1] + TABLES[block[2]]() + block[3], text)


def test_the_tables_are_what_the_code_says() -> None:
    texts = [page.read_text(encoding="utf-8") for page in TABLE_PAGES]
    assert [name for text in texts for _, name, _ in BLOCK.findall(text)] == list(TABLES)
    assert list(map(written_anew, texts)) == texts, "run: python -m tests.test_docs"


@pytest.mark.parametrize(
    ("made", "heading"),
    [
        *((made, "Args") for made in (raw_env, ConquianEnv, ConquianVectorEnv, Batch)),
        *(
            (made, "Attributes")
            for made in (Config, PPOConfig, NetworkConfig, PoolConfig, EvaluationConfig)
        ),
    ],
)
def test_every_argument_is_documented(made: type, heading: str) -> None:
    documented = ", ".join(entries(inspect.getdoc(made) or "", heading)).split(", ")
    assert sorted(documented) == sorted(defaults(made))


def test_the_openspiel_parameters_are_documented() -> None:
    found = entries(inspect.getdoc(openspiel) or "", "Parameters of the game")
    assert list(found) == list(openspiel.DEFAULTS)


def test_the_vector_environment_has_the_defaults_of_the_single_one() -> None:
    single, vector = defaults(ConquianEnv), defaults(ConquianVectorEnv)
    assert {name: vector[name] for name in single} == single


def test_pieces_follow_each_other_without_a_gap() -> None:
    places = [range(*LAYOUT[piece.name].indices(OBSERVATION_SIZE)) for piece in PIECES]
    assert [place for places in places for place in places] == list(range(OBSERVATION_SIZE))


# --- snippets ---


@pytest.mark.parametrize("path", [p for p in PAGES if str(p) not in ELSEWHERE], ids=str)
def test_snippets_run_and_print_what_the_page_says(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A block of text right after a snippet is what it prints."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", text, flags=re.DOTALL)
    assert len(found) == text.count("```python")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for snippet, output in found:
        exec(compile(snippet, path.name, "exec"), namespace)
        assert capsys.readouterr().out == output


def test_pages_have_snippets() -> None:
    names = {path.stem for path in PAGES if "```python" in path.read_text(encoding="utf-8")}
    assert names >= {"README", "environments", "extending", "faq", "recipes", "reproducibility"}


# --- links ---


def prose(path: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("](", ""), text)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page; those that come again are numbered."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def links(path: Path) -> list[str]:
    text = prose(path)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r'<(?:img|a)[^>]* (?:src|href)="(.+?)"', text
    )


EXTERNAL = re.compile(r"https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[\w./#-]*)?")


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        if ":" in link:
            assert EXTERNAL.fullmatch(link), link
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_picture_is_shown_and_every_page_is_found() -> None:
    shown = {(path.parent / link).resolve() for path in PAGES for link in links(path)}
    wanted = [*Path("docs").glob("*.md"), *Path("docs/images").iterdir()]
    wanted += Path("notebooks").glob("*.ipynb")
    assert {path.resolve() for path in wanted} <= shown


if __name__ == "__main__":
    for page in TABLE_PAGES:
        page.write_text(written_anew(page.read_text(encoding="utf-8")), encoding="utf-8")
