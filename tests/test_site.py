"""The site of the documentation: built without a warning, whole, and alone."""

import functools
import importlib.util
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import agents
import conquian_env
from tests.test_docs import anchors

pytest.importorskip("zensical")
NAVIGATION = Path("mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]


def builder() -> ModuleType:
    """docs/build.py, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("build", "docs/build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("site") / "site"
    assert builder().build(out) == 0
    return out


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if value and name == {"a": "href", "img": "src", "script": "src", "link": "href"}.get(
                tag
            ):
                self.links.append(value)


# --- what it is made of ---


def test_every_page_is_in_the_navigation() -> None:
    folder, made = Path("docs"), builder().PAGES.values()
    pages = [*made, *(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))]
    listed = re.findall(r"^ +- .+: (\S+\.md)$", NAVIGATION, flags=re.MULTILINE)
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize(
    ("path", "text", "turned"),
    [
        ("README.md", "[a](docs/agents.md#b)", "[a](agents.md#b)"),
        ("README.md", '<img src="docs/images/end.png">', '<img src="images/end.png">'),
        ("docs/agents.md", "[a](../conquian_env/RULES.md)", "[a](rules.md)"),
        ("docs/agents.md", "[a](../agents/agent.py)", "[a](source/agents/agent.py.md)"),
        ("docs/api/game.md", "[a](../agents.md)", "[a](../agents.md)"),
        ("notebooks/02_train.ipynb", "[a](../docs/training.md#keys)", "[a](../training.md#keys)"),
        ("docs/agents.md", "[a](https://b.org) [c](#d)", "[a](https://b.org) [c](#d)"),
        ("docs/agents.md", "`x[0](y)`\n```\n[a](b.md)\n```\n", "`x[0](y)`\n```\n[a](b.md)\n```\n"),
    ],
)
def test_links_between_files_become_links_between_pages(path: str, text: str, turned: str) -> None:
    assert builder().for_site(text, path)[0] == turned


def test_a_broken_link_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = builder()
    written = module.write_sources

    def planted(folder: Path) -> None:
        written(folder)
        (folder / "faq.md").write_text("# Questions\n\n[nowhere](nowhere.md)\n")

    monkeypatch.setattr(module, "write_sources", planted)
    assert module.build(tmp_path / "site") != 0
    assert "page does not exist" in capsys.readouterr().out
    assert not (tmp_path / "site").exists()


# --- what came out ---


def test_links_and_anchors_lead_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 25
    for path, page in pages.items():
        for link in page.links:
            if re.match("https?:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            assert target.is_file(), (path, link)
            if anchor and target.suffix == ".html":
                assert anchor in pages[target].anchors, (path, link)


@pytest.mark.parametrize("package", [conquian_env, agents], ids=lambda package: package.__name__)
def test_every_export_is_in_the_reference(site: Path, package: ModuleType) -> None:
    found = set().union(*(Page(path).anchors for path in (site / "api").iterdir()))
    assert {f"{package.__name__}.{name}" for name in package.__all__} <= found


@pytest.mark.parametrize("path", builder().PAGES)
def test_files_of_the_repository_are_whole_and_keep_their_anchors(site: Path, path: str) -> None:
    page = Page(site / builder().PAGES[path].replace(".md", ".html"))
    assert anchors(Path(path)) <= page.anchors


# --- in a browser ---


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["index", "rules", "api/game"])
def test_a_page_asks_for_nothing_from_elsewhere(
    browser: Any, address: str, name: str, width: int
) -> None:
    view = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.on("request", lambda request: asked.append(request.url))
    view.goto(f"{address}{name}.html", wait_until="networkidle")
    assert asked
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == said == []
    assert view.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    view.close()


def test_the_search_finds_a_page(browser: Any, address: str) -> None:
    view = browser.new_page(viewport={"width": 1400, "height": 900})
    view.goto(f"{address}index.html", wait_until="networkidle")
    view.keyboard.press("Control+k")
    view.keyboard.type("bradley terry")
    found = view.locator('a[href*="tournaments.html"]:has(mark)')
    found.first.wait_for()
    view.close()
