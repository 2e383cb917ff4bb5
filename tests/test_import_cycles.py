"""No modules import each other, lazy imports and imports for annotations included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_garbage_collection")

SOURCES = {"trueodds": Path("src/trueodds"), "trueodds_studies": Path("studies/src/trueodds_studies")}


def module_names(package: str) -> dict[str, Path]:
    """The modules of a package by dotted name."""
    root = Path(__file__).parents[1] / SOURCES[package]
    names = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return names


def imported(source: str, modules: frozenset[str]) -> set[str]:
    """The modules that are imported anywhere in the source, the package itself not counted."""
    targets = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            targets |= (names & modules) or {node.module}
    return {name for name in targets & modules if "." in name}


def find_cycle(sources: dict[str, str]) -> list[str]:
    """The modules of one import cycle; empty if there is none."""
    modules = frozenset(sources)
    graph = {name: imported(source, modules) - {name} for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", SOURCES)
def test_no_modules_import_each_other(package: str) -> None:
    assert find_cycle({name: path.read_text(encoding="utf-8") for name, path in module_names(package).items()}) == []


def test_a_lazy_import_and_one_for_annotations_make_a_cycle() -> None:
    sources = {
        "p.a": "def f():\n    from p import b\n",
        "p.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import f\n",
    }
    assert sorted(set(find_cycle(sources))) == ["p.a", "p.b"]
    assert find_cycle(sources | {"p.b": ""}) == []
