"""The public face: what ``conquian_env`` exports, that it is documented, and that it is typed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import conquian_env

PACKAGE = Path(conquian_env.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_the_export_list() -> None:
    assert conquian_env.__all__ == [
        "Batch",
        "Game",
        "Outcome",
        "Phase",
        "RuleSet",
        "Source",
        "Termination",
        "View",
        "Views",
        "action_name",
        "card",
        "card_name",
        "cards",
        "parse_action",
    ]


def test_every_export_is_there() -> None:
    for name in conquian_env.__all__:
        assert getattr(conquian_env, name).__module__.startswith("conquian_env.")
    scope: dict[str, object] = {}
    exec("from conquian_env import *", scope)
    assert set(scope) - {"__builtins__"} == set(conquian_env.__all__)


def public(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    """The public classes, functions and methods among some statements, by qualified name."""
    for node in body:
        if isinstance(node, (ast.ClassDef, Function)) and not node.name.startswith("_"):
            yield f"{inside}.{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{inside}.{node.name}")


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def untyped(function: Function) -> list[str]:
    """Arguments without an annotation, and "return" for a missing one of the result."""
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    arguments += [extra for extra in (given.vararg, given.kwarg) if extra]
    bare = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
    return bare + ([] if function.returns else ["return"])


def source_id(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_all_sources_are_found() -> None:
    assert {"__init__.py", "batch.py", "engine.py", "game.py"} <= set(map(source_id, SOURCES))


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_all_that_is_public_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    named = public(tree.body, path.stem)
    assert [name for name, node in named if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", SOURCES, ids=source_id)
def test_every_function_is_annotated(path: Path) -> None:
    tree = ast.parse(path.read_text())
    bare = {function.name: untyped(function) for function in functions(tree)}
    assert {name: missing for name, missing in bare.items() if missing} == {}
