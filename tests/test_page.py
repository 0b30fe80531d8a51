"""The page of a tournament: its numbers, what is escaped, and how a browser shows it."""

from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import training.page
from conquian_env import Game, GameRecord
from conquian_env.actions import action_name
from conquian_env.cli import main
from conquian_env.record import read_record, replay
from tests.playing import random_actions
from training.charts import Axis, Course, histogram
from training.match import Forfeit, MatchResult
from training.page import to_html
from training.report import write_report
from training.results import Tournament, TournamentConfig
from training.schedule import pairings
from training.tables import GAMES, caption, game_table, points

EVIL = "<script>alert('it ran')</script>"
MESSAGE = "</td></table><script>document.title = 'owned'</script><img src=x onerror=alert(1)>"
AGENTS = ("weak & \"odd\" 'one'", EVIL, "strong")
DEALS = 60


def record(seed: int, agents: tuple[str, str]) -> GameRecord:
    start = Game("classic", seed=seed)
    return GameRecord.of(start, random_actions(start, seed, eager=True), agents)


def match(first: str, second: str, edge: float) -> MatchResult:
    """Made up: ``first`` wins the more, the higher its edge."""
    rng = np.random.default_rng([AGENTS.index(first), AGENTS.index(second)])
    return MatchResult(
        first,
        second,
        np.sign(np.round(rng.normal(edge, 1, (DEALS, 2)))).astype(np.float32),
        rng.integers(20, 70, (DEALS, 2)).astype(np.int16),
        tuple(Forfeit(deal, 0, EVIL, "raised", MESSAGE) for deal in range(3) if first == EVIL),
        tuple(record(seed, agents) for seed, agents in enumerate([(first, second)] * 3)),
    )


@cache
def tournament(kind: Any = "round-robin") -> Tournament:
    config = TournamentConfig(AGENTS, format=kind, pairs=DEALS)
    met = [(AGENTS[i], AGENTS[j], (i - j) / 2) for i, j in pairings(kind, len(AGENTS))]
    return Tournament(config, tuple(match(*pairing) for pairing in met))


class Page(HTMLParser):
    """What a reader of the page finds.

    Attributes:
        tags: all that were opened, with their attributes.
        tables: texts of their cells, by the id of the caption.
        kinds: classes of the cells, in the same order.
    """

    VOID = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.kinds: dict[str, list[list[str]]] = {}
        self.text = ""
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.classes: list[list[str]] = []
        self.name = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in self.VOID:
            return
        self.open.append(tag)
        if tag == "table":
            self.rows, self.classes = [], []
        if tag == "caption":
            self.name = dict(attrs).get("id") or ""
        if tag == "tr":
            self.rows.append([])
            self.classes.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.classes[-1].append(dict(attrs).get("class") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self.tables[self.name] = [[" ".join(cell.split()) for cell in row] for row in self.rows]
            self.kinds[self.name] = self.classes

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@cache
def page(kind: Any = "round-robin") -> Page:
    return Page(to_html(tournament(kind)))


# --- numbers ---


def test_the_ranking_has_each_agents_numbers() -> None:
    head, *rows = page().tables["ranking-table"]
    assert head[-2:] == ["share in the mixture", "value against it"]
    for place, (row, rating) in enumerate(zip(rows, tournament().ratings.ranking, strict=True), 1):
        assert row[:3] == [str(place), rating.agent, str(rating)]
        assert row[3:5] == (
            [points(rating.lead), "yes" if rating.apart else "no"] if rating.lead else ["–", "–"]
        )
        assert row[5] == str(tournament().overall(rating.agent))
        assert row[6] == f"{rating.share:.1%}".replace("%", " %")
        assert float(row[7]) == pytest.approx(rating.value, abs=5e-4)


def test_points_lie_on_the_axis_where_the_ratings_are() -> None:
    ends = [end for rating in tournament().ratings.ranking for end in (rating.low, rating.high)]
    axis = Axis.over(min(0, *ends), max(0, *ends))
    dots = [
        float((tag["cx"] or "").rstrip("%")) for tag in page().all("circle") if "%" in tag["cx"]
    ]
    assert dots == [axis.place(rating.elo) for rating in tournament().ratings.ranking]
    assert dots == sorted(dots, reverse=True)


def test_cells_say_by_sign_and_kind_who_wins() -> None:
    rows, kinds = page().tables["cross-table"][1:], page().kinds["cross-table"][1:]
    ranking = tournament().ranking
    for agent, row, classes in zip(ranking, rows, kinds, strict=True):
        for other, cell, kind in zip(ranking, row[1:], classes[1:], strict=True):
            if agent == other:
                assert (cell, kind) == ("", "self")
                continue
            payoff = tournament().ratings.against(agent, other)
            mean, interval = cell.split(" ", 1)
            assert f"{mean} {interval}" == str(payoff)
            certain = payoff.low > 0 or payoff.high < 0
            assert mean[0] == {"won": "+", "ahead": "+", "lost": "-", "behind": "-"}[kind]
            assert certain == (kind in ("won", "lost"))


def test_agents_that_did_not_meet() -> None:
    rows, ranking = page("ladder").tables["cross-table"][1:], tournament("ladder").ranking
    first, last = ranking.index(AGENTS[0]), ranking.index(AGENTS[-1])
    assert rows[first][1 + last] == rows[last][1 + first] == "–"
    assert page("ladder").tables["ranking-table"][0][-1] == "score"
    assert "no mixture of agents" in page("ladder").text


def test_pairings_are_those_of_the_other_reports() -> None:
    head, *rows = page().tables["games-table"]
    assert head[:-1] == list(GAMES)
    assert [row[:-1] for row in rows] == game_table(tournament())


def test_caption_draws_and_lengths() -> None:
    matches = tournament().matches
    drawn = sum(int((match.payoff == 0).sum()) for match in matches)
    first = sum(int((match.payoff * [1, -1] > 0).sum()) for match in matches)
    games = 2 * DEALS * len(matches)
    plies = np.concatenate([match.plies for match in matches])
    assert caption(tournament()) in page().text
    assert f"Of {games} games {drawn} were drawn ({100 * drawn / games:.1f} %)" in page().text
    assert f"{first} won by seat 0 ({100 * first / games:.1f} %)" in page().text
    assert f"They took {plies.min()} to {plies.max()} plies, {plies.mean():.1f}" in page().text


def test_forfeits_by_kind_with_a_message() -> None:
    assert page().tables["forfeits-table"][1:] == [[EVIL, "raised", "3", "strong", "0", MESSAGE]]
    quiet = replace(
        tournament(), matches=tuple(replace(m, forfeits=()) for m in tournament().matches)
    )
    assert "No game was forfeited." in Page(to_html(quiet)).text


# --- recorded games ---


def test_a_score_sheet_is_the_game() -> None:
    (head, *rows), shown = page().tables["game-1"], []
    for row in rows:
        shown += [(seat, said) for seat in (0, 1) for said in row[1 + seat].split(", ") if said]
    assert not any(row[2] == later[1] == "" for row, later in pairwise(rows))
    game = tournament().matches[0].records[0]
    played = list(zip(replay(game), game.actions, strict=False))
    assert head == ["ply", f"0 {game.agents[0]}", f"1 {game.agents[1]}"]
    assert [seat for seat, _ in shown] == [before.actor for before, _ in played]
    for (_, said), (before, action) in zip(shown, played, strict=True):
        name = action_name(action)
        assert said == (name if " " in name else f"{name} ({before.face_up})")


def test_games_that_are_left_out_keep_the_numbers_of_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training.page, "MOST_SHOWN", 1)
    write_report(tournament(), tmp_path)
    text = Page((tmp_path / "tournament.html").read_text()).text
    lines = [1, 2, 4, 5, 7, 8]
    assert "6 of the 9 recorded games; all are in games.jsonl" in text
    for line in range(1, 10):
        seed = read_record(tmp_path / "games.jsonl", line).seed
        said = f"Actions of game {line}, classic, seed {seed}"
        assert (said in text) == (line in lines)
        assert (f"replay games.jsonl --line {line}" in text) == (line in lines)


def test_the_page_says_how_to_look_at_the_games(tmp_path: Path) -> None:
    write_report(tournament(), tmp_path)
    said = "python -m conquian_env show games.jsonl --html replay.html"
    assert said in Page((tmp_path / "tournament.html").read_text()).text
    _, _, _, *words = said.replace("games.jsonl", str(tmp_path / "games.jsonl")).split()
    assert main([*words[:-1], str(tmp_path / "replay.html")]) == 0
    assert "</html>" in (tmp_path / "replay.html").read_text()


def test_a_game_that_was_broken_off_has_no_winner() -> None:
    start = Game("classic", seed=1)
    cut = GameRecord.of(start, random_actions(start, 1)[:4], ("a", "b"))
    first, *others = tournament().matches
    broken = replace(tournament(), matches=(replace(first, records=(cut,)), *others))
    assert "a v b, 4 plies: not played to its end" in Page(to_html(broken)).text


# --- the file ---


def test_the_page_is_the_first_file_of_the_report(tmp_path: Path) -> None:
    paths = write_report(tournament(), tmp_path)
    assert paths[0] == tmp_path / "tournament.html"
    assert paths[0].read_text(encoding="utf-8") == to_html(tournament())
    linked = [tag["href"] for tag in page().all("a")]
    for href in linked:
        assert href
        if href.startswith("#"):
            assert href[1:] in [tag.get("id") for _, tag in page().tags]
        else:
            assert (tmp_path / href).exists()


def test_tables_are_told_to_those_who_do_not_see_them() -> None:
    assert len(page().all("caption")) == len(page().all("table"))
    assert all(tag.get("scope") in ("row", "col") for tag in page().all("th"))
    names = [tag.get("id") for _, tag in page().tags]
    assert len([name for name in names if name]) == len({name for name in names if name})
    for _, attributes in page().tags:
        assert attributes.get("aria-labelledby", "ranking") in names
    for tag in page().all("svg"):
        inside = tag.get("width") == "100%"
        assert inside or tag.get("aria-hidden") or (tag["role"] == "img" and tag["aria-label"])


def test_names_and_messages_are_no_markup() -> None:
    assert page().all("script") == page().all("img") == []
    assert EVIL in page().text
    assert MESSAGE in page().text
    labels = [tag.get("aria-label") or "" for tag in page().all("svg")]
    assert sum(AGENTS[0] in label for label in labels) == 1
    assert all(not name.startswith("on") for _, tag in page().tags for name in tag)


def test_letters_that_turn_the_line_or_cannot_be_written_are_shown_as_escapes() -> None:
    odd = "\u202eabc\ud800\x00\x1b"
    renamed = Tournament(
        replace(tournament().config, agents=(odd, *AGENTS[1:])),
        tuple(
            replace(m, first=odd if m.first == AGENTS[0] else m.first) for m in tournament().matches
        ),
    )
    text = to_html(renamed).encode().decode()
    assert "\\u202eabc\\ud800\\x00\\x1b" in Page(text).text
    assert all(letter.isprintable() or letter == "\n" for letter in text)


# --- drawings ---


def test_a_course_ends_at_the_score() -> None:
    for agent in AGENTS:
        course = Course.of(tournament().deal_scores(agent))
        assert course.mean[-1] == pytest.approx(tournament().overall(agent).mean)
        assert len(course.count) == 30


@pytest.mark.parametrize("deals", [2, 3, 31, 1000])
def test_a_course_is_mean_and_interval_of_the_first_values(deals: int) -> None:
    values = np.random.default_rng(deals).normal(5, 2, deals)
    course = Course.of(values)
    assert course.count[-1] == deals
    for n, mean, low, high in zip(course.count, course.mean, course.low, course.high, strict=True):
        half = 1.96 * values[:n].std(ddof=1) / np.sqrt(n)
        assert (mean, low, high) == pytest.approx(
            (values[:n].mean(), values[:n].mean() - half, values[:n].mean() + half)
        )


def test_a_course_of_equal_values_has_no_width() -> None:
    course = Course.of(np.full(50, 1 / 3))
    np.testing.assert_allclose([course.low, course.high], 1 / 3)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 289, (0, 100, 200, 300)),
        (-0.31, 0.2, (-0.4, -0.2, 0, 0.2)),
        (0, 0, (0, 1)),
        (-7, -7, (-7, -6)),
        (0, 1000, (0, 500, 1000)),
    ],
)
def test_an_axis_has_round_numbers(low: float, high: float, ticks: tuple[float, ...]) -> None:
    axis = Axis.over(low, high)
    assert axis.ticks == pytest.approx(ticks)
    assert axis.place(ticks[0]) == axis.place(ticks[0] - 1) == 0
    assert axis.place(ticks[-1]) == axis.place(ticks[-1] + 1) == 100
    assert axis.place((ticks[0] + ticks[-1]) / 2) == 50


@pytest.mark.parametrize(("low", "high"), [(0, 1), (7, 8), (20, 70), (3, 900), (-4, 5)])
def test_a_histogram_counts_everything_once(low: int, high: int) -> None:
    values = np.random.default_rng(0).integers(low, high, (40, 2)).astype(np.int16)
    bars = histogram(values)
    assert len(bars) <= 26
    for bar, following in pairwise(bars):
        assert following.low == bar.high + 1
    for bar in bars:
        assert bar.count == ((values >= bar.low) & (values <= bar.high)).sum()
    assert sum(bar.count for bar in bars) == values.size


# --- in a browser ---


@pytest.mark.parametrize("width", [1200, 1300, 1600])
def test_tables_fit_a_wide_screen(browser: Any, tmp_path: Path, width: int) -> None:
    write_report(tournament(), tmp_path)
    view = browser.new_page(viewport={"width": width, "height": 800})
    view.goto((tmp_path / "tournament.html").as_uri())
    for box in view.locator(".scroll").all():
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0
    view.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_shows_it_without_anything_else(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    write_report(tournament(), tmp_path)
    address = (tmp_path / "tournament.html").as_uri()
    said: list[str] = []
    asked: list[str] = []
    view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(address)

    assert view.evaluate("document.documentElement.scrollWidth") == width
    for thing in view.locator(".scroll, svg:not(.store, .scroll svg)").all():
        box = thing.bounding_box()
        assert thing.is_visible()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert min(box["width"], box["height"]) > 10
    bright = (
        view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert bright == (scheme == "light")
    assert view.title().startswith("Tournament: ")
    assert (said, asked) == ([], [address])
    view.close()


def test_a_script_would_not_run_if_one_came_in(browser: Any, tmp_path: Path) -> None:
    planted = "<script>document.title = 'owned'</script></main>"
    (tmp_path / "page.html").write_text(to_html(tournament()).replace("</main>", planted))
    view = browser.new_page()
    view.goto((tmp_path / "page.html").as_uri())
    assert view.locator("script").count() == 1
    assert view.title().startswith("Tournament: ")
    view.close()


def test_games_open_by_keyboard(browser: Any, tmp_path: Path) -> None:
    write_report(tournament(), tmp_path)
    view = browser.new_page(viewport={"width": 390, "height": 800})
    view.goto((tmp_path / "tournament.html").as_uri())
    sheets = view.locator("table.sheet")
    assert not sheets.nth(0).is_visible()
    view.locator("summary").first.focus()
    view.keyboard.press("Enter")
    assert sheets.nth(0).is_visible()
    assert not sheets.nth(1).is_visible()
    assert view.evaluate("document.documentElement.scrollWidth") == 390
    view.close()


def test_a_wide_table_scrolls_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    write_report(tournament(), tmp_path)
    view = browser.new_page(viewport={"width": 390, "height": 800})
    view.goto((tmp_path / "tournament.html").as_uri())
    region = view.get_by_role("region", name="The games of each pairing")
    region.focus()
    view.keyboard.press("ArrowRight")
    view.wait_for_function("region => region.scrollLeft > 0", arg=region.element_handle())
    assert view.evaluate("scrollX") == 0
    view.close()
