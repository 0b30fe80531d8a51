"""Builds the site of the documentation: ``python docs/build.py site``.

The pages are those of this folder and, since nothing is written twice, some files of the
repository. Links are between files of the repository, so that they work where it is read; here
they are turned into links between pages. A source file that is linked becomes a page of its own.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "conquian_env/RULES.md": "rules.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
PICTURES = (".png", ".svg")
LINK = re.compile(r'(?<=\]\()(?![a-z]+:|#)[^)\s]+(?=\))|(?<= src=")[^":]+(?=")|(?<= href=")[^":#]+(?=")')
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
UNLISTED = "---\nsearch:\n  exclude: true\n---\n"


def place(path: str) -> str:
    """Where a file of the repository is on the site."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path}" if path.endswith(PICTURES) else f"source/{path}.md"


def for_site(text: str, path: str) -> tuple[str, set[str]]:
    """A page with the site's links, and the files that it links to.

    Args:
        text: Markdown.
        path: of its file in the repository.
    """
    linked: set[str] = set()

    def turn(link: re.Match[str]) -> str:
        name, mark, anchor = link[0].partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        linked.add(target)
        here = posixpath.dirname(place(path))
        return posixpath.relpath(place(target), here or ".") + mark + anchor

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(turn, part) for part in parts[::2]]
    return "".join(parts), linked


def listing(path: str) -> str:
    """A page that shows a source file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".ipynb"):
        return UNLISTED + "\n\n".join(cells(text))
    language = {".py": "python", ".toml": "toml"}.get(Path(path).suffix, "text")
    return f"{UNLISTED}# {path}\n\n````{language}\n{text}````\n"


def cells(notebook: str) -> Iterator[str]:
    """The cells of a notebook as Markdown."""
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"


def write_sources(folder: Path) -> None:
    """Put all pages, and what they link to, into a folder."""
    todo = [*PAGES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    done: set[str] = set()
    while todo:
        path = todo.pop()
        if path in done:
            continue
        done.add(path)
        target = folder / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(PICTURES):
            shutil.copyfile(ROOT / path, target)
        elif path in PAGES or path.startswith("docs/"):
            text, linked = for_site((ROOT / path).read_text(encoding="utf-8"), path)
            target.write_text(text, encoding="utf-8")
            todo += linked
        else:
            target.write_text(listing(path), encoding="utf-8")


def build(out: Path) -> None:
    """Build the site; a warning is an error."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_sources(work / "docs")
        shutil.copyfile(ROOT / "mkdocs.yml", work / "mkdocs.yml")
        # From the root, so that the reference is of this tree.
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", work / "mkdocs.yml"]
        subprocess.run(command, cwd=ROOT, check=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(work / "site", out)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
