"""Which tests check which claim of the documentation, from the tables of the pages and the markers of the tests."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {"estimators": "estimators.md", "tests": "tests.md", "calibrators": "calibrators.md", "diagrams": "diagrams.md"}
FOLDERS = {"estimators": "estimators", "tests": "hypotests", "calibrators": "calibrators", "diagrams": "diagrams"}
REGISTRIES = {"estimators": "ESTIMATORS", "tests": "TESTS", "calibrators": "CALIBRATORS", "diagrams": "DIAGRAMS"}
MAX_TESTS = 2  # of a method, those that compare with reference numbers first
MAX_WORDS = 8


class Collector:
    """A plugin of pytest that keeps the tests it finds."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def pytest_collection_finish(self, session: Any) -> None:
        self.items = list(session.items)


def table_rows(page: str, names: set[str]) -> dict[str, str]:
    """The first row of a page's tables about each name: what its second cell says."""
    rows: dict[str, str] = {}
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`([a-z_0-9]+)`", cells[0]) if line.startswith("|") and len(cells) > 1 else ():
            if name in names:
                words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cells[1].replace("`", "")).split()
                rows.setdefault(name, " ".join(words[:MAX_WORDS]) + (" …" if len(words) > MAX_WORDS else ""))
    return rows


class TestFunction:
    """A test with the values of all its parameters: the texts among them, and the names of the types of the others."""

    def __init__(self, item: Any) -> None:
        self.identifier, self.path = _identifier(item), item.path
        source = inspect.getsource(item.function)
        self.words = set(re.findall(r"\w+", source))
        marked = item.get_closest_marker("reference") is not None
        self.compares_with_references = marked or bool(re.search(r"\bgolden\b|\breference\.", source))
        self.values: set[str] = set()

    def add_parameters(self, item: Any) -> None:
        for value in getattr(getattr(item, "callspec", None), "params", {}).values():
            self.values |= (
                {value} if isinstance(value, str) else {type(value).__name__, str(getattr(value, "name", ""))}
            )


def claims_of_methods(items: list[Any]) -> list[dict[str, Any]]:
    """A claim for each method that a page describes, with the tests that name it."""
    functions: dict[str, TestFunction] = {}
    for item in items:
        if _identifier(item) not in functions:
            functions[_identifier(item)] = TestFunction(item)
        functions[_identifier(item)].add_parameters(item)
    claims = []
    for family, page in PAGES.items():
        registry = getattr(importlib.import_module(f"trueodds.{FOLDERS[family]}"), REGISTRIES[family])
        described = table_rows(page, set(registry.names()))
        of_family = [one for one in functions.values() if one.path.parent.name == FOLDERS[family]]
        laws = [one for one in functions.values() if one.path.parent.name == "laws"]
        for name in registry.names():
            method = registry.load(name)
            own_files = {f"test_{method.__module__.rsplit('.', 1)[-1]}", f"test_{name}"}
            ranked = []
            for one in of_family:
                is_named = bool({method.__name__, name} & (one.words | one.values))
                is_own = one.path.stem in own_files
                if is_named or is_own:
                    ranked.append(((not one.compares_with_references, not is_own, not is_named), one.identifier))
            own_laws = sorted(
                (FOLDERS[family] not in one.path.stem, one.identifier) for one in laws if name in one.values
            )
            chosen = [identifier for _, identifier in [*sorted(ranked)[:MAX_TESTS], *own_laws[:1]]]
            claims.append(
                {
                    "page": f"docs/{page}",
                    "claim": f"{name}: {described[name]}" if name in described else name,
                    "checks": f"{family}:{name}",
                    "tests": chosen,
                }
            )
    return claims


def claims_of_markers(items: list[Any]) -> list[dict[str, Any]]:
    """A claim for each statement that tests are marked with."""
    tests: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for item in items:
        for marker in item.iter_markers("claim"):
            page, statement, checks = marker.args
            tests[page, statement, checks].append(_identifier(item))
    return [
        {"page": page, "claim": statement, "checks": checks, "tests": list(dict.fromkeys(names))}
        for (page, statement, checks), names in sorted(tests.items())
    ]


def _identifier(item: Any) -> str:
    return f"{item.path.relative_to(ROOT).as_posix()}::{item.originalname}"


def collect() -> dict[str, Any]:
    collector = Collector()
    folders = [f"tests/{name}" for name in (*FOLDERS.values(), "laws", "resampling", "tallies", "monitoring")]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *folders], plugins=[collector])
    assert code == 0, printed.getvalue()
    items = [item for item in collector.items if hasattr(item, "function") and hasattr(item, "originalname")]
    claims = [*claims_of_markers(items), *claims_of_methods(items)]
    pages = sorted({claim["page"] for claim in claims})
    tests = sorted({test for claim in claims for test in claim["tests"]})
    files = sorted({test.partition("::")[0] for test in tests})
    numbers = {test: number for number, test in enumerate(tests)}
    return {
        "pages": pages,
        "files": files,
        "tests": [[files.index(file), name] for file, _, name in (test.partition("::") for test in tests)],
        "claims": [
            [pages.index(claim["page"]), claim["claim"], claim["checks"], [numbers[test] for test in claim["tests"]]]
            for claim in claims
        ],
    }


def find_claims() -> dict[str, list[Any]]:
    """Pages, files, tests (file, name) and claims (page, text, checks, tests), which name each other by numbers.

    pytest collects the tests in a process of its own.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "tests.selftest_claims"],
        cwd=ROOT, capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    found: dict[str, list[Any]] = json.loads(ran.stdout)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(collect()))
