"""What do the words of a call mean? The member, the lens and the rows behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.registry import listed
from trueodds.data.plausibility import doubts
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.io.models import is_array
from trueodds.lenses.lens import Lens, as_lens, default_lens
from trueodds.lenses.region import within
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.diagrams.recipe import Recipe

BELONG = {
    "weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "weights": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "sample_weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "cluster": "Clusters belong to the rows: Predictions(y_true, y_prob, cluster=…).",
    "group": "Groups belong to the rows: Predictions(y_true, y_prob, group=…); audit and by_group look at each.",
    "seed": "The seed is rng=.",
    "random_state": "The seed is rng=.",
}


def resolve_method(registry: Any, kind: type, method: Any, settings: dict[str, Any]) -> Any:
    """The member behind a name, with its settings; an instance has its own."""
    known = isinstance(method, str) and method in registry.names()
    for name in settings.keys() & BELONG.keys():
        if known and registry.takes(method, name):
            continue
        raise InputError("TO202", "That is said elsewhere.", repr(name), BELONG[name])
    if isinstance(method, kind):
        if settings:
            raise InputError(
                "TO202",
                "A member given as an instance has its own settings.",
                ", ".join(settings),
                "Set them on the instance, or give its name.",
            )
        return method
    if not isinstance(method, str):
        raise InputError(
            "TO201",
            f"{registry.kind} must be a name or an instance.",
            describe(method),
            f"Pass Predictions(y_true, y_prob) as one argument, then a name such as {registry.names()[0]!r}."
            if is_array(method)
            else listed(registry.names()),
        )
    return registry.make(method, settings)


def seeded(estimator: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """The settings, with the seed of the call for an estimator that deals rows into folds."""
    if not isinstance(estimator, str) or "rng" in settings or estimator not in ESTIMATORS.names():
        return settings
    if not ESTIMATORS.takes(estimator, "rng"):
        return settings
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    return settings | {"rng": seed}


def seeded_test(test: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """The settings of a test, with the seed where its statistic deals folds or the like."""
    if isinstance(test, str) and test == "consistency":
        return seeded(settings.get("statistic", "ece"), settings, rng, generator)
    takes = isinstance(test, str) and test in TESTS.names() and TESTS.takes(test, "rng")
    return seeded(test, settings, rng, generator) if takes else settings


def lens_for(rows: Predictions | Tally, lens: Any, method: Estimator | HypothesisTest | Recipe | None) -> Lens:
    """The lens asked for, else the member's own, else that of the data: positive for two classes, confidence above."""
    if lens is not None:
        return as_lens(lens)
    if method is not None and method.lens and rows.kind == "classes":
        return as_lens(method.lens)
    return default_lens(rows)


def looked_at(rows: Predictions | Tally, region: Any) -> Any:
    """The rows of a region of the simplex, or all."""
    if region is None:
        return rows
    if isinstance(rows, Tally):
        raise InputError(
            "TO403",
            "A region of the simplex needs the rows.",
            f"region={describe(region)} of a tally",
            "Use mode='exact'.",
        )
    return within(rows, region)


def call_settings(rng: Any, rows: Predictions | Tally, weight_kind: str, region: Any = None) -> dict[str, Any]:
    """What the call itself said, for the settings of its result."""
    settings: dict[str, Any] = {"seed": int(rng) if isinstance(rng, (int, np.integer)) else "generator"}
    if region is not None:
        settings["region"] = (
            region if isinstance(region, str) else getattr(region, "__name__", None) or describe(region)
        )
    if weight_kind != "importance" or (isinstance(rows, Predictions) and rows.weight is not None):
        settings["weight_kind"] = weight_kind
    return settings


def notes_of(*rows: Predictions | Tally) -> list[Note]:
    """What was noted of the rows when they were read, and what speaks against them as they are."""
    return [note for preds in rows if isinstance(preds, Predictions) for note in (*preds.notes, *doubts(preds))]
