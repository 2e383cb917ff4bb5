"""Does the project keep its own rules: small files, accurate names, light imports, documented codes and methods?"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trueodds"
STUDIES = ROOT / "studies" / "src" / "trueodds_studies"
FILES = [*sorted(SOURCE.rglob("*.py")), *sorted(STUDIES.rglob("*.py"))]
REGISTRIES = {
    "trueodds.estimators": "ESTIMATORS",
    "trueodds.hypotests": "TESTS",
    "trueodds.calibrators": "CALIBRATORS",
    "trueodds.diagrams": "DIAGRAMS",
}

# Where an optional library may be imported at the top of a file; everywhere else it is imported where it is used.
OPTIONAL = {
    "pyarrow": ("io/arrow", "io/spark.py"),
    "pandas": ("io/frames.py",),
    "polars": ("io/frames.py",),
    "dask": ("io/dask.py",),
    "pyspark": ("io/spark.py",),
    "torch": ("io/torch.py", "torch/", "calibrators/torch", "integrations/", "studies/"),
    "torchmetrics": ("torch/metric.py",),
    "lightning": ("integrations/lightning.py",),
    "transformers": ("integrations/transformers.py",),
    "keras": ("integrations/keras.py",),
    "mlflow": ("integrations/mlflow.py",),
    "evaluate": ("integrations/evaluate_metric.py",),
    "wandb": (),
    "lm_eval": ("integrations/lm_eval.py",),
    "duckdb": (),
    "matplotlib": ("reports/",),
    "jinja2": ("reports/",),
    "rich": ("reports/", "cli/"),
}
# Codes that any part may use: names and settings of any member, and that a tally has no rows.
SHARED = re.compile(r"TO2\d\d|TO403")


def inside(file: Path) -> str:
    """The path within the package; that of a study begins with `studies/`."""
    if file.is_relative_to(STUDIES):
        return f"studies/{file.relative_to(STUDIES).as_posix()}"
    return file.relative_to(SOURCE).as_posix()


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(tree(file)))


@pytest.fixture(scope="module", autouse=True)
def _free_trees(no_garbage_collection: None) -> Iterator[None]:
    """Free a million nodes, which would slow down the garbage collections of later tests."""
    yield
    tree.cache_clear()
    nodes.cache_clear()


# Files


def test_no_file_is_longer_than_600_lines() -> None:
    lines = {inside(file): file.read_text(encoding="utf-8").count("\n") for file in FILES}
    assert {name: count for name, count in lines.items() if count > 600} == {}


def test_a_module_opens_with_one_line_that_says_what_it_answers() -> None:
    openings = {inside(file): (ast.get_docstring(tree(file)) or "").split("\n\n")[0] for file in FILES}
    sentence = re.compile(r"\S+ [^\n]*[.?!]")
    assert {name: opening for name, opening in openings.items() if not sentence.fullmatch(opening)} == {}


def test_every_file_name_says_something() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "tools"}
    parts = {inside(file): {file.stem, *inside(file).removeprefix("studies/common/").split("/")[:-1]} for file in FILES}
    assert [name for name, words in parts.items() if empty & words] == []


def test_no_function_name_starts_with_an_empty_verb() -> None:
    named = (
        f"{inside(file)}:{node.lineno} {node.name}"
        for file in FILES
        for node in nodes(file)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and re.match(r"_?(get|compute|do)_", node.name)
        and node.name not in {"get_params", "get_metadata_routing", "get_feature_names_out"}  # scikit-learn's contract
    )
    assert list(named) == []


def test_nothing_is_left_to_do() -> None:
    left = re.compile(r"\b(TODO|FIXME|XXX)\b|# type: ignore(?!\[)|# noqa(?!:)|doctest: *\+SKIP")
    problems = [
        f"{inside(file)}:{number} {line.strip()}"
        for file in FILES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if left.search(line)
    ]
    assert problems == []


def test_only_a_base_class_leaves_a_method_open() -> None:
    """NotImplementedError is the whole body of a method, and the class has subclasses that fill it in."""
    bases = {
        base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    }
    allowed = {
        id(name)
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.ClassDef) and node.name in bases
        for method in node.body
        if isinstance(method, ast.FunctionDef) and is_open(method)
        for name in ast.walk(method)
    }
    raised = [
        f"{inside(file)}:{node.lineno}"
        for file in FILES
        for node in nodes(file)
        if isinstance(node, ast.Name) and node.id == "NotImplementedError" and id(node) not in allowed
    ]
    assert raised == []


def is_open(method: ast.FunctionDef) -> bool:
    body = [line for line in method.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


INTERFACE = (
    "api/",
    "calibrators/recalibrated_classifier.py",
    "calibrators/sklearn.py",
    "integrations/",
    "torch/",
)


def test_classes_and_the_functions_of_the_interface_have_a_docstring() -> None:
    # What users reach of other classes is checked by tests/test_docstrings.py. Other functions and methods need a
    # docstring only where name, signature and types do not say what they do.
    bare = [
        f"{inside(file)}:{node.lineno} {node.name}"
        for file in FILES
        for holder in nodes(file)
        if isinstance(holder, (ast.Module, ast.ClassDef)) and not getattr(holder, "name", "").startswith("_")
        for node in holder.body
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and inside(file).startswith(INTERFACE))
        if not node.name.startswith("_") and ast.get_docstring(node) is None
        if not any(getattr(d, "attr", "") in {"setter", "overload"} for d in node.decorator_list)
    ]
    assert bare == []


def test_a_name_with_a_leading_underscore_is_used_in_its_module_alone() -> None:
    modules = {inside(file).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in FILES}

    def borrowed(file: Path) -> Iterator[str]:
        aliases = {}
        for node in nodes(file):
            if isinstance(node, ast.ImportFrom):
                package = (node.module or "").partition(".")[2]
                for alias in node.names:
                    name = f"{package}.{alias.name}".lstrip(".")
                    if name in modules:
                        aliases[alias.asname or alias.name] = name
                    elif package in modules and alias.name.startswith("_"):
                        yield f"{inside(file)}: {name}"
        for node in nodes(file):
            is_private = isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
            if is_private and isinstance(node.value, ast.Name) and node.value.id in aliases:
                yield f"{inside(file)}: {aliases[node.value.id]}.{node.attr}"

    assert [name for file in FILES for name in borrowed(file)] == []


WRITES = re.compile(
    r"""(?<!json_files)\.write_(text|bytes)\(|(?<!archive\.)\bopen\([^()]*["'][wax]b?\+?["']|savefig\((?!file|out)|os\.(replace|rename)\("""
)
PRINTS = re.compile(r"\bclick\.s?echo\(|(?<![\w.])print\(")


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        (
            WRITES,
            {"core/atomic_write.py", "studies/common/resumable_runs.py"},
        ),  # a study appends lines, and reads those that are whole
        (PRINTS, {"cli/output.py"}),
    ],
    ids=["writes", "prints"],
)
def test_files_are_written_and_text_is_printed_in_one_place(pattern: re.Pattern[str], allowed: set[str]) -> None:
    files = {
        inside(file)
        for file in FILES
        for line in file.read_text(encoding="utf-8").splitlines()
        if pattern.search(line) and ">>>" not in line
    }
    assert files == allowed


# Imports


def imported_at_top(file: Path) -> Iterator[str]:
    """Libraries that a file loads when it is loaded itself; what only a type checker sees does not count."""
    pending: list[ast.AST] = list(tree(file).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pending += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.ExceptHandler))
            ]


def test_an_optional_library_is_imported_only_in_the_file_named_for_it() -> None:
    wrong = [
        f"{inside(file)}: {name}"
        for file in FILES
        for name in imported_at_top(file)
        if name.split(".")[0] in OPTIONAL and not inside(file).startswith(OPTIONAL[name.split(".")[0]] or ("nowhere",))
    ]
    assert wrong == []


DOCTESTS_NEED = (
    *("dask", "distributed", "pyspark", "torch", "torchmetrics", "lightning", "transformers", "keras"),
    *("mlflow", "lm_eval", "evaluate"),
)


def test_files_that_need_an_engine_are_left_out_of_the_doctests_where_it_is_missing() -> None:
    # The list in conftest.py once named a folder that had been renamed, so that tests without Dask ended in an error.
    text = (ROOT / "conftest.py").read_text(encoding="utf-8")
    paths = re.findall(r'"((?:studies/)?src/[^"]+\.py)"', text)
    listed = {re.sub(r"^(studies/)?src/trueodds(_studies)?/", r"\1", path) for path in paths}
    needing = {
        inside(file) for file in FILES if any(name.split(".")[0] in DOCTESTS_NEED for name in imported_at_top(file))
    }
    assert listed == needing


def test_scikit_learn_is_imported_only_by_the_calibrators() -> None:
    heavy = {inside(file) for file in FILES if "sklearn" in {name.split(".")[0] for name in imported_at_top(file)}}
    assert [name for name in heavy if not name.startswith(("calibrators/", "studies/"))] == []


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running `code`."""
    lines = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False, encoding="utf-8")
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines())


def test_importing_trueodds_loads_numpy_at_most() -> None:
    libraries = {"scipy", "sklearn", "numba", "narwhals", "click", *OPTIONAL}
    assert loaded_after("import trueodds") & libraries == set()


def test_measuring_loads_neither_scikit_learn_nor_scipy_stats_nor_an_optional_library() -> None:
    loaded = loaded_after(
        "from trueodds.estimators import ESTIMATORS\nimport trueodds as to\n"
        "[ESTIMATORS.load(name) for name in ESTIMATORS.names()]\n"
        "to.measure(to.Predictions([0, 1, 1, 0], [.2, .7, .9, .4]), 'ece')"
    )
    assert loaded & {"sklearn", "scipy.stats", *OPTIONAL} == set()


@pytest.mark.parametrize("words", [["--help"], ["audit", "--help"], ["list"]], ids=" ".join)
def test_help_and_list_load_no_member(words: list[str]) -> None:
    modules = {table(registry).load(name).__module__ for registry, name in all_methods()}
    loaded = loaded_after(
        "import contextlib, io, trueodds.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    trueodds.cli.main({words!r})"
    )
    assert loaded & {*modules, "trueodds_studies"} == set()


def test_the_advice_to_install_a_library_works_from_a_clone() -> None:
    """Before a release no index has the package: `pip install trueodds[…]` would fetch nothing, or another's work."""
    pages = [ROOT / "README.md", ROOT / "studies" / "README.md", *(ROOT / "docs").rglob("*.md")]
    wrong = [
        file.name
        for file in (*FILES, *pages)
        if re.search(r"pip install ['\"]?trueodds", file.read_text(encoding="utf-8"))
    ]
    assert wrong == []
    files = {file.name for file in FILES if "pip install" in file.read_text(encoding="utf-8")}
    assert files == {"errors.py"}


# Codes


CODE = re.compile(r"T[ON]\d{3}")


@cache
def codes_used() -> dict[str, set[str]]:
    """Each code in the source, and the parts of the house that use it; examples in docstrings do not count."""
    used: dict[str, set[str]] = {}
    for file in FILES:
        if inside(file) == "core/errors.py":
            continue
        for node in nodes(file):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                used.setdefault(node.value, set()).add(inside(file).split("/")[0].removesuffix(".py"))
    return used


def codes_listed() -> list[tuple[str, set[str]]]:
    """The rows of the page of codes: code, and the parts that are said to use it."""
    rows = re.findall(
        r"^\| (T[ON]\d{3}) \|.*\| ([^|]*) \|$", (ROOT / "docs" / "codes.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return [(code, set(where.split(", "))) for code, where in rows]


def test_every_code_stands_on_the_page_of_codes_exactly_once() -> None:
    listed = [code for code, _ in codes_listed()]
    assert sorted(listed) == sorted(set(listed))
    used = set(codes_used())
    assert used - set(listed) == set(), "used, and not on the page"
    assert set(listed) - used == set(), "on the page, and not used"


def test_no_two_parts_use_a_code_for_different_things_unseen() -> None:
    """A code that another part of the house starts to use has to be looked up and added to its row."""
    used = codes_used()
    differ = {
        code: f"page says {sorted(where)}, source says {sorted(used.get(code, set()))}"
        for code, where in codes_listed()
        if (where != {"anywhere"} if SHARED.match(code) else where != used.get(code))
    }
    assert differ == {}


# Members


def table(registry: str) -> Any:
    return getattr(importlib.import_module(registry), REGISTRIES[registry])


def all_methods() -> list[tuple[str, str]]:
    return [(registry, name) for registry in REGISTRIES for name in table(registry).names()]


def method_id(value: Any) -> str:
    return str(value).removeprefix("trueodds.")


@cache
def texts_of_tests() -> tuple[str, ...]:
    """Every test file but those that go over whole registries."""
    tests = ROOT / "tests"
    return tuple(
        file.read_text(encoding="utf-8")
        for file in sorted(tests.rglob("test_*.py"))
        if file.parent not in {tests, tests / "laws"}
    )


@pytest.mark.parametrize(("registry", "name"), all_methods(), ids=method_id)
def test_a_member_has_a_test_that_names_it(registry: str, name: str) -> None:
    method = table(registry).load(name)
    named = re.compile(rf"""["']{name}["']|\b{method.__name__}\b""")
    assert any(named.search(text) for text in texts_of_tests())


@pytest.mark.parametrize(("registry", "name"), all_methods(), ids=method_id)
def test_a_member_has_a_docstring_with_an_example(registry: str, name: str) -> None:
    doc = table(registry).load(name).__doc__ or ""
    assert ">>>" in doc


SECTIONS = {
    "trueodds.estimators": {
        "formula": r"\.\. math::",
        "units or range": r"(?i)units|in \[0|in \(−∞",
        "bias": r"(?i)bias",
        "cost": r"(?i)cost",
        "source": r"References\n",
    },
    "trueodds.hypotests": {"null law": r"(?i)null", "cost": r"(?i)cost", "source": r"References\n"},
    "trueodds.calibrators": {"source": r"References\n"},
}


@pytest.mark.parametrize(
    ("registry", "name"), [method for method in all_methods() if method[0] in SECTIONS], ids=method_id
)
def test_a_member_says_what_a_reader_must_know(registry: str, name: str) -> None:
    doc = table(registry).load(name).__doc__ or ""
    missing = [what for what, pattern in SECTIONS[registry].items() if not re.search(pattern, doc)]
    assert missing == []


def test_no_module_gives_a_constant_two_values() -> None:
    # Merged modules may use one name for two things; the functions of the first one then read the value of the second.
    doubled = []
    for file in FILES:
        names: set[str] = set()
        for node in tree(file).body:
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            constants = {part.id for part in parts if part.id.isupper() and isinstance(part.ctx, ast.Store)}
            used = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
            doubled += [f"{inside(file)}: {name}" for name in (constants & names) - used]
            names |= constants
    assert doubled == []


def test_no_two_classes_share_a_name() -> None:
    files: dict[str, list[str]] = {}
    for file in (file for file in FILES if not inside(file).startswith("studies/")):
        for node in nodes(file):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(inside(file))
    # The error and its diagram, the result and its diagram have one name in public, each in its own package; so have
    # the callbacks of several libraries, each in the module named for its library.
    assert {name for name, where in files.items() if len(where) > 1} == {"Comparison", "Corp", "CalibrationCallback"}


# Libraries that plain `make test` does not install.
NOT_INSTALLED = ("torch", "trueodds.torch", "torchmetrics", "lightning", "transformers", "keras", "dask", "pyspark")


@pytest.mark.slow
def test_no_test_needs_a_library_that_may_be_absent_before_it_is_looked_for() -> None:
    """A module that imports one of them at its top calls pytest.importorskip before, or no test of it can run."""
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if "importorskip" in ast.unparse(statement):
                break
            names = (
                [alias.name for alias in getattr(statement, "names", [])] if isinstance(statement, ast.Import) else []
            )
            names += [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
            found += [
                f"{file.name}: {name}"
                for name in names
                if any(name == library or name.startswith(f"{library}.") for library in NOT_INSTALLED)
            ]
    assert found == []
