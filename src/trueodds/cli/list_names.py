"""trueodds list: list the names of estimators, tests, calibrators, diagrams, lenses and studies."""

from __future__ import annotations

import importlib

import click

from trueodds.cli import output
from trueodds.cli.study import declared_studies, installed_studies
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.core.suggestions import suggest_names

_FAMILIES = {
    "estimators": "trueodds.estimators:ESTIMATORS",
    "tests": "trueodds.hypotests:TESTS",
    "calibrators": "trueodds.calibrators:CALIBRATORS",
    "diagrams": "trueodds.diagrams:DIAGRAMS",
}
# Words of the problem, whose modules load numpy; a test holds them to what those modules accept.
_WORDS = {
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


_ALL = (*_FAMILIES, "studies", *_WORDS)


@click.command("list", short_help="List the available names.")
@click.argument("family", required=False, metavar=f"[{'|'.join(_ALL)}]")
def list_names(family: str | None) -> None:
    """List the names of estimators, tests, calibrators, diagrams, studies, lenses, partitions and distances."""
    if family is not None and family not in _ALL:
        raise InputError("TO601", "Unknown kind of names.", repr(family), suggest_names(family, _ALL))
    if family is not None:
        output.show("\n".join(names(family)))
        return
    for name in _ALL:
        if name == "studies" and not declared_studies():
            continue  # they are a package of their own; asked for by name they are said to be missing
        output.show(f"{name:<12} {' '.join(names(name))}")


def names(family: str) -> tuple[str, ...]:
    """Return the names of one family, without importing any method."""
    if family in _WORDS:
        return _WORDS[family]
    if family == "studies":
        return installed_studies().names()
    module, _, table = _FAMILIES[family].partition(":")
    registry: Registry = getattr(importlib.import_module(module), table)
    return registry.names()
