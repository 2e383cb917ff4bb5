"""Do the docstrings of what a user can reach have the sections of numpydoc, and every parameter of the signature?"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

import trueodds as to
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.prior_shift import class_weights
from trueodds.core.docstrings import docstring_sections
from trueodds.core.results import Result
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

ORDER = [
    "Parameters",
    "Attributes",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
]
FUNCTIONS = {name: value for name in to.__all__ if inspect.isfunction(value := getattr(to, name))} | {
    "calibrators.fit": fit,
    "calibrators.class_weights": class_weights,
    **{f"metrics.{name}": getattr(to.metrics, name) for name in to.metrics.__all__},
}
METHODS = {
    f"{registry.kind}-{name}": registry.load(name)
    for registry in (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS)
    for name in registry.names()
}


def sections(obj: Any) -> dict[str, str]:
    return docstring_sections(obj.__doc__)


def described(text: str) -> list[str]:
    """The names that a section of parameters describes."""
    entries = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$\n(?=[ ]{4}\S)", text, flags=re.M)
    return [name.strip().lstrip("*") for entry in entries for name in entry.split(",")]


def check_form(obj: Any) -> dict[str, str]:
    parts = sections(obj)
    summary = parts[""].split("\n\n")[0]
    assert "\n" not in summary, f"the summary is one line, not {summary!r}"
    assert summary.endswith("."), summary
    titles = [title for title in parts if title]
    assert titles == [title for title in ORDER if title in titles], f"sections are {titles}; their order is {ORDER}"
    for title in ("Parameters", "Attributes", "Returns", "Raises"):
        assert title not in parts or re.match(r"\S.*\n[ ]{4}\S", parts[title]), (
            f"{title} has no entry with a text below it"
        )
    assert not re.search(r" as in `\w+`$", "\n".join(parts.values()), flags=re.M), "a shared entry is unknown"
    assert ">>>" not in "".join(text for title, text in parts.items() if title != "Examples"), (
        "examples stand in Examples"
    )
    return parts


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_describes_parameters_result_and_errors(name: str) -> None:
    parts = check_form(FUNCTIONS[name])
    assert described(parts["Parameters"]) == list(inspect.signature(FUNCTIONS[name]).parameters)
    assert {"Returns", "Raises", "Examples"} <= parts.keys()
    assert ">>>" in parts["Examples"]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_describes_its_settings_with_notes_references_and_an_example(name: str) -> None:
    parts = check_form(METHODS[name])
    fields = [field.name for field in dataclasses.fields(METHODS[name]) if field.init]
    assert described(parts.get("Parameters", "")) == fields
    assert {"Notes", "Examples"} <= parts.keys()
    assert "References" in parts or name.startswith("diagram")
    assert ">>>" in parts["Examples"]


# What a verb returns, and what its `data` may be.
CLASSES = {
    "Predictions": to.Predictions,
    "InputError": to.InputError,
    "Note": to.Note,
    **{
        f"{path}.{name}": (path, name)
        for path, name in (
            ("core.results", "Estimate"),
            ("core.results", "Verdict"),
            ("tallies.tally", "Tally"),
            ("calibrators.fitted_calibrator", "FittedCalibrator"),
            ("reports.audit", "Audit"),
            ("diagrams.base", "Diagram"),
            ("lenses.view", "View"),
        )
    },
}


def load_class(name: str) -> Any:
    import importlib

    value = CLASSES[name]
    return getattr(importlib.import_module(f"trueodds.{value[0]}"), value[1]) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_users_meet_describes_itself_and_its_methods(name: str) -> None:
    cls = load_class(name)
    parts = check_form(cls)
    assert "Parameters" in parts or "Attributes" in parts
    for method, value in vars(cls).items():
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if method.startswith("_") or not inspect.isfunction(function):
            continue
        described_parts = check_form(function)
        parameters = [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]
        assert described(described_parts.get("Parameters", "")) == parameters, f"{name}.{method}"
        returns = inspect.signature(function).return_annotation
        assert "Returns" in described_parts or returns in ("None", None), f"{name}.{method} has no Returns"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_s_docstring_begins_with_its_use_by_name(name: str) -> None:
    kind, _, method = name.partition("-")
    use = sections(METHODS[name])[""].split("\n\n")[1]
    verb = {"estimator": "measure", "test": "test", "calibrator": "fit", "diagram": "draw"}[kind]
    assert use.startswith(f"Use: ``to.{verb}(")
    assert f', "{method}")``' in " ".join(use.split())
    assert ("Settings by name: " in " ".join(use.split())) == bool(METHODS[name].setting_names())


def test_help_names_the_settings_that_only_the_name_takes() -> None:
    assert '``to.measure(y_true, y_prob, "ece")``. Settings by name: `bins`, `partition`' in " ".join(
        (to.estimators.ece.__doc__ or "").split()
    )
    assert 'to.fit(y_true, y_prob, "temperature")' in (to.calibrators.Temperature.__doc__ or "")
    assert 'to.draw(y_true, y_prob, "corp")' in (to.CorpDisplay.__doc__ or "")


@pytest.mark.parametrize("name", METHODS)
def test_see_also_names_methods_as_their_functions_take_them(name: str) -> None:
    names = {known for registry in (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS) for known in registry.names()}
    also = re.findall(r"^(\S+) : ", sections(METHODS[name]).get("See Also", ""), flags=re.M)
    assert {one for one in also if one not in names} <= {"ScoreRegret", "trueodds.by_group", "trueodds.compare"}


@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith("calibrator")])
def test_the_example_of_a_method_imports_no_module_of_the_library(name: str) -> None:
    assert "from trueodds." not in sections(METHODS[name])["Examples"]


def results() -> list[type]:
    """Every class of results."""
    for function in FUNCTIONS.values():
        inspect.signature(function)  # loads the module
    classes = [Result]
    for cls in classes:
        classes += [
            sub for sub in cls.__subclasses__() if sub.__module__.startswith("trueodds.") and sub not in classes
        ]
    return classes


def test_every_method_and_property_that_users_reach_has_a_docstring() -> None:
    classes = [value for name in to.__all__ if inspect.isclass(value := getattr(to, name))]
    reached = {*classes, *METHODS.values(), *map(load_class, CLASSES), *results()}
    bare = [
        f"{cls.__module__}.{cls.__qualname__}.{name}"
        for cls in reached
        for name in dir(cls)
        if not name.startswith("_")
        and (inspect.isroutine(value := inspect.getattr_static(cls, name)) or isinstance(value, property))
        and not inspect.getdoc(getattr(cls, name) if inspect.isroutine(value) else value)
    ]
    assert bare == []
