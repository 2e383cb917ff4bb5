"""Print how large the package is: modules, lines, functions entered by a call, and what is written more than once.

`tests/test_size.py` compares the numbers with LIMITS. A limit may only be lowered, except in a commit that adds a
capability, which raises it by what the capability needs.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "trueodds"
SMALL_MODULE = 60  # lines of code
WRITTEN_OR_READ = re.compile(r"(?:to|from)_(?:dict|json)$")  # names of functions that convert to or from JSON
# Methods whose names are also values of settings (interval="auto", band="consistency"), settings or columns.
HOMONYMS = frozenset({"auto", "beta", "bins", "consistency", "kernel", "score", "shift"})
LIMITS = {
    "modules": 446,
    "lines of code": 72_545,
    "lines of docstrings": 25_583,
    "modules under 60 lines of code": 67,
    "public methods of the largest class": 26,
    "places that ask for Predictions or Tally": 46,
    "functions that convert to or from JSON": 43,
    "names of methods outside their module": 396,
    "numbers named in capitals": 729,
    "functions entered by measure without an interval": 88,
    "files entered by measure without an interval": 26,
    "functions entered by measure with an interval": 265,
    "files entered by measure with an interval": 43,
    "functions entered by audit": 1_020,  # the largest of several runs, which differ by twelve
    "files entered by audit": 133,
}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Module:
    """One source file, parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @cached_property
    def docstring_lines(self) -> set[int]:
        """Numbers of the lines of all docstrings."""
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        return {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
            for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
        }

    @cached_property
    def code_lines(self) -> set[int]:
        """Numbers of the lines with a token that is neither docstring nor comment."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        return lines - self.docstring_lines


def modules() -> list[Module]:
    """All modules of the package."""
    return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def entered(call: Callable[[], Any]) -> tuple[int, int]:
    """Number of functions of the package, and of its files, that a call enters; comprehensions do not count."""
    codes: set[CodeType] = set()

    def record(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not code.co_name.startswith("<"):
            codes.add(code)

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(codes), len({code.co_filename for code in codes})


def calls() -> Iterator[tuple[str, int]]:
    """Functions and files that three calls enter, each in its second call on new data."""
    import numpy as np

    import trueodds as to

    def predictions(seed: int) -> to.Predictions:
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 3, size=400)
        return to.Predictions((rng.random(400) < p).astype(int), p)

    calls_by_name = {
        "measure without an interval": lambda preds: to.measure(preds, "ece", interval=None),
        "measure with an interval": lambda preds: to.measure(preds, "ece", resamples=99),
        "audit": lambda preds: to.audit(preds, resamples=99),
    }
    for name, call in calls_by_name.items():
        call(predictions(1))
        preds = predictions(2)
        functions, files = entered(lambda call=call, preds=preds: call(preds))  # type: ignore[misc]
        yield f"functions entered by {name}", functions
        yield f"files entered by {name}", files


def public_methods(node: ast.ClassDef) -> int:
    """Number of public methods and properties of a class, without those that it inherits."""
    return len({item.name for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")})


def asks_for_type(node: ast.AST, names: frozenset[str] = frozenset({"Predictions", "Tally"})) -> bool:
    """Whether a call asks if something is `Predictions` or a `Tally`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
        return False
    return bool(names & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)})


def is_constant(node: ast.stmt) -> bool:
    """Whether a statement of a module sets a number with a name in capitals."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    is_named = any(isinstance(target, ast.Name) and target.id.isupper() for target in targets)
    return is_named and isinstance(node.value, ast.Constant) and isinstance(node.value.value, (int, float))  # type: ignore[union-attr]


def foreign_names(tree: list[Module]) -> int:
    """How often a string is the name of an estimator, a test or a calibrator outside the module that defines it.

    The tables of names do not count, nor do names that mostly mean something else (see HOMONYMS).
    """
    from trueodds.calibrators import CALIBRATORS
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS

    home = {
        name: sys.modules[registry.load(name).__module__].__file__
        for registry in (ESTIMATORS, TESTS, CALIBRATORS)
        for name in registry.names()
    }
    tables = {
        str(PACKAGE / family / "__init__.py") for family in ("calibrators", "diagrams", "estimators", "hypotests")
    }
    return sum(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in home
        and home[node.value] != str(module.path)
        and node.value not in HOMONYMS
        and str(module.path) not in tables
        for module in tree
        for node in ast.walk(module.tree)
    )


def sizes() -> dict[str, int]:
    """Every number by its name, without those of calls."""
    tree = modules()
    nodes = [node for module in tree for node in ast.walk(module.tree)]
    return {
        "modules": len(tree),
        "lines of code": sum(len(module.code_lines) for module in tree),
        "lines of docstrings": sum(len(module.docstring_lines) for module in tree),
        f"modules under {SMALL_MODULE} lines of code": sum(len(module.code_lines) < SMALL_MODULE for module in tree),
        "public methods of the largest class": max(
            public_methods(node) for node in nodes if isinstance(node, ast.ClassDef)
        ),
        "places that ask for Predictions or Tally": sum(map(asks_for_type, nodes)),
        "functions that convert to or from JSON": sum(
            isinstance(node, ast.FunctionDef) and bool(WRITTEN_OR_READ.search(node.name)) for node in nodes
        ),
        "names of methods outside their module": foreign_names(tree),
        "numbers named in capitals": sum(is_constant(node) for module in tree for node in module.tree.body),
    }


def count_test_lines() -> int:
    """Number of lines of the tests, which has no limit, because every corrected fault adds a test."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in Path(__file__).parent.rglob("*.py"))


def main() -> int:
    """Print every number and its limit; 1 if a number is above it, by more than 1 % if it counts what a call enters."""
    numbers, entries = sizes(), dict(calls())
    for name, number in (numbers | entries).items():
        sys.stdout.write(f"{number:8,}  {name} (limit {LIMITS[name]:,})\n")
    sys.stdout.write(f"{count_test_lines():8,}  lines of tests\n")
    is_above = [number > LIMITS[name] for name, number in numbers.items()]
    return int(any(is_above) or any(number > 1.01 * LIMITS[name] for name, number in entries.items()))


if __name__ == "__main__":
    sys.exit(main())
