"""Builds the site of the documentation: ``python docs/build.py site``.

The pages are those of this folder and, since nothing is written twice, some files of the
repository. Links are between files of the repository, so that they work where it is read; here
they are turned into links between pages. A notebook or source file that is linked becomes a page.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "conquian_env/RULES.md": "rules.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
PICTURES = (".png", ".svg")
LINK = re.compile(r'(?<=\]\()(?![a-z]+:|#)[^)\s]+(?=\))|(?<= src=")[^":]+(?=")')
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml"}
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def place(path: str) -> str:
    """Where a file of the repository is among the sources of the site."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".ipynb"):
        return path.replace(".ipynb", ".md")
    return f"source/{path}.md"


def for_site(text: str, path: str) -> tuple[str, set[str]]:
    """A page with the site's links, and the files that it links to.

    Args:
        text: Markdown.
        path: of its file in the repository, as the links have them.
    """
    linked: set[str] = set()

    def turn(link: re.Match[str]) -> str:
        name, mark, anchor = link[0].partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        linked.add(target)
        return (
            posixpath.relpath(place(target), posixpath.dirname(place(path)) or ".") + mark + anchor
        )

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(turn, part) for part in parts[::2]]
    return "".join(parts), linked


def markdown(path: str) -> str:
    """The text of a page that is made from a file: Markdown, a notebook, or a source."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return "\n\n".join(map(cell, json.loads(text)["cells"]))
    return f"{UNSEARCHED}# {path}\n\n```{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}```\n"


def cell(of: dict[str, object]) -> str:
    """A cell of a notebook as Markdown."""
    source = "".join(map(str, of["source"]))
    return source if of["cell_type"] == "markdown" else f"```python\n{source}\n```"


def write_sources(folder: Path) -> None:
    """Put all pages, and what they link to, into a folder."""
    todo = {*PAGES, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))}
    done: set[str] = set()
    while todo:
        path = todo.pop()
        done.add(path)
        target = folder / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(PICTURES):
            shutil.copyfile(ROOT / path, target)
        else:
            text, linked = for_site(markdown(path), path)
            target.write_text(text, encoding="utf-8")
            todo |= linked - done


def build(out: Path) -> int:
    """Build the site into a folder, whose contents are replaced; a warning is an error.

    Returns:
        the exit status.
    """
    if out.exists() and not (out / "index.html").exists() and list(out.iterdir()):
        print(f"{out} holds something else than a site", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_sources(work / "docs")
        shutil.copyfile(ROOT / "mkdocs.yml", work / "mkdocs.yml")
        # From the root, so that the reference is of this tree.
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", work / "mkdocs.yml"]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
        print(done.stdout + done.stderr, end="")
        status = done.returncode or int("griffe:" in done.stderr + done.stdout)  # of docstrings
        if status == 0:
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(work / "site", out)
    return status


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else "site")))
