"""Do names and messages use the field's terms? The words that this project once had for itself are not allowed back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_garbage_collection")

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "studies/src", "tests", "benchmarks", "demo")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))

# Parts of a name, in snake or camel case, that say nothing to a reader who knows the literature; what to write instead.
PRIVATE = {
    "said": "predicted, settings_used or describe", "seen": "observed", "told": "summary or notes",
    "came": "y, outcomes or event_rate", "asked": "estimand or question", "wanted": "target", "needed": "required",
    "found": "the noun for what it is", "taken": "the noun for what it is", "kept": "the noun for what it is",
    "given": "the noun for what it is", "meant": "the noun for what it is", "theirs": "published or reference",
    "sure": "interval_spec or overconfident", "sureness": "interval_spec",
    "off": "miscalibrated or gap", "standing": "status", "least": "min_effect or lower", "most": "upper_bound or max",
    "few": "n_small or reduced", "whole": "overall or pooled", "together": "joint or combined", "apart": "difference",
    "judge": "test or evaluate", "judged": "tested or adjusted", "rising": "sorted or increasing",
    "spread": "std or scale", "bend": "hessian or curvature", "slack": "tolerance", "reach": "radius",
    "law": "distribution", "laws": "distributions", "worth": "effective_n", "held": "bin_weight", "mine": "mask",
    "member": "method", "members": "methods", "stretch": "segment", "walk": "cumulative_residuals",
    "station": "path_point", "rail": "axis_strip", "foot": "strip_height", "ink": "style", "glass": "smoother",
    "here": "in_memory", "far": "streamed", "again": "replayed", "passes": "n_passes", "slot": "bin_index",
    "dealt": "seeded", "redrawn": "resampled_labels", "floor": "noise_floor, min_prob or min_pvalue",
    "each": "the name of the element", "over": "what the function does", "best": "best_value",
}  # fmt: skip
# Names that hold such a word where it is the field's own term.
TERMS = re.compile("noise_floors?|best_value|n_passes|held_out|least_squares|cross_fitted")
# Complete names that are no names by themselves: a participle, or a class of the old vocabulary.
ALONE = {"rule", "rules", "map", "maps", "fitted", "pooled"}
# Names that stay, each with its reason; at most ten.
EXCEPTIONS = {
    ("fitted", "src/trueodds/hypotests/giviti.py"): "a setting: whether the model was fitted on these rows",
    ("fitted", "src/trueodds/hypotests/hosmer_lemeshow.py"): "the same setting",
    ("fitted", "src/trueodds/hypotests/_glm/calibration_belt.py"): "the same setting",
    ("fitted", "src/trueodds/diagrams/calibration_belt.py"): "the same setting",
}


def words(name: str) -> list[str]:
    """The parts of a name in lower case."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


@cache
def private(name: str) -> str:
    """The part of a name that is not a term of the field; empty where there is none.

    >>> private("said_of"), private("noise_floor"), private("WholeRows"), private("fitted")
    ('said', '', 'whole', 'fitted')
    """
    rest = TERMS.sub("", "_".join(words(name)))
    parts = [part for part in rest.split("_") if part]
    return next((part for part in parts if part in PRIVATE), rest if rest in ALONE else "")


def named(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that a file defines: functions, classes, arguments, variables, attributes. Tests are sentences."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not node.name.startswith("test_"):
                    yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield getattr(node, "lineno", 0), name


def test_there_are_at_most_ten_exceptions_and_each_is_in_use() -> None:
    assert len(EXCEPTIONS) <= 10
    unused = [
        (name, file)
        for name, file in EXCEPTIONS
        if name not in {used for _, used in named(ast.parse((ROOT / file).read_text(encoding="utf-8")))}
    ]
    assert unused == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_are_the_terms_of_the_field(folder: str) -> None:
    wrong = []
    for file in (file for file in FILES if file.is_relative_to(ROOT / folder)):
        where = file.relative_to(ROOT).as_posix()
        if part := private(file.stem.removeprefix("test_")):
            wrong.append(f"{where}: {part} in the file's name → {PRIVATE.get(part, 'a noun')}")
        for line, name in named(ast.parse(file.read_text(encoding="utf-8"))):
            if (part := private(name)) and (name, where) not in EXCEPTIONS:
                wrong.append(f"{where}:{line} {name}: {part} → {PRIVATE.get(part, 'the noun for what it is')}")
    assert wrong == [], "\n".join(wrong)
