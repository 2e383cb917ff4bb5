"""trueodds list: list the names of estimators, tests, calibrators, diagrams, lenses and studies."""

from __future__ import annotations

import importlib

import click

from trueodds.cli import output
from trueodds.cli.study import declared_studies, installed_studies
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.core.suggestions import suggest_names

_REGISTRY_OF_FAMILY = {
    "estimators": "trueodds.estimators:ESTIMATORS",
    "tests": "trueodds.hypotests:TESTS",
    "calibrators": "trueodds.calibrators:CALIBRATORS",
    "diagrams": "trueodds.diagrams:DIAGRAMS",
}
# Names, or examples of them, that are in no registry. They are repeated here because their modules import NumPy; a test
# checks that the modules accept them.
_NAMES_OF_FAMILY = {
    "lenses": (
        "canonical",
        "confidence",
        "positive",
        "classwise",
        "top-label",
        "top-2",
        "rank:2",
        "class:0",
        "groups:[[0,1],[2]]",
    ),
    "partitions": (
        "uniform",
        "equal-mass",
        "mass:100",
        "sweep",
        "edges",
        "median-variance",
        "simplex-grid",
        "distinct",
    ),
    "distances": ("tv", "l1", "l2", "sq-euclidean", "max", "kl", "lp:3"),
}
_ALL_FAMILIES = (*_REGISTRY_OF_FAMILY, "studies", *_NAMES_OF_FAMILY)


@click.command("list", short_help="List the available names.")
@click.argument("family", required=False, metavar=f"[{'|'.join(_ALL_FAMILIES)}]")
def list_names(family: str | None) -> None:
    """List the names of estimators, tests, calibrators, diagrams, studies, lenses, partitions and distances."""
    if family is not None and family not in _ALL_FAMILIES:
        raise InputError("TO601", "Unknown kind of names.", repr(family), suggest_names(family, _ALL_FAMILIES))
    if family is not None:
        output.print_text("\n".join(names_of_family(family)))
        return
    for name in _ALL_FAMILIES:
        if name == "studies" and not declared_studies():
            continue  # their package is not installed, which only `trueodds list studies` reports
        line = f"{name:<12} {' '.join(names_of_family(name))}"
        width = output.terminal_width()
        output.print_text(line if width is None else output.wrap_lines(line, width, hanging=13))


def names_of_family(family: str) -> tuple[str, ...]:
    """Return the names of a family, such as "estimators" or "lenses", without importing any method."""
    if family in _NAMES_OF_FAMILY:
        return _NAMES_OF_FAMILY[family]
    if family == "studies":
        return installed_studies().names()
    module, _, table = _REGISTRY_OF_FAMILY[family].partition(":")
    registry: Registry = getattr(importlib.import_module(module), table)
    return registry.names()
