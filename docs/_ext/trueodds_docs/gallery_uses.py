"""Which methods and functions an example of the gallery uses, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

# The family whose names a function takes.
FAMILY_OF_FUNCTION = {
    "measure": "estimators",
    "compare": "estimators",
    "scorer": "estimators",
    "test": "tests",
    "power": "tests",
    "fit": "calibrators",
    "draw": "diagrams",
}
# Method that a function uses if the call names none.
DEFAULT_METHOD = {"test": "omnibus", "fit": "auto", "draw": "reliability"}


def uses_of_example(source: str, names: Mapping[str, tuple[str, ...]]) -> set[tuple[str, str]]:
    """Return the methods that the calls of a script name, as (family, name), and functions, as ("functions", name).

    >>> sorted(uses_of_example('to.measure(preds, "ece")', {"estimators": ("ece",)}))
    [('estimators', 'ece'), ('functions', 'measure')]
    """
    return {
        use
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "to"
        for use in _uses_of_call(node.func.attr, node, names)
    }


def _uses_of_call(function: str, call: ast.Call, names: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    yield "functions", function
    family = FAMILY_OF_FUNCTION.get(function)
    if family is None:
        return
    texts = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
    methods = [text for text in texts if text in names[family]]
    if not methods and function in DEFAULT_METHOD and not texts:
        methods = [DEFAULT_METHOD[function]]
    for method in methods:
        yield family, method


def examples_by_use(examples: Path, names: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, str], list[str]]:
    """Map each method and function to the file names of the examples that use it."""
    uses: dict[tuple[str, str], list[str]] = {}
    for file in sorted(examples.glob("plot_*.py")):
        for use in uses_of_example(file.read_text(encoding="utf-8"), names):
            uses.setdefault(use, []).append(file.name)
    return uses
