"""Resolve the arguments that public functions share: method and settings, seed, lens, region and reported settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.signatures import describe_row_argument
from trueodds.core.suggestions import list_names
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.io.models import is_array
from trueodds.io.source import Source
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Positive
from trueodds.lenses.lens_by_name import as_lens, default_lens
from trueodds.lenses.region import select_region
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.diagrams.recipe import Recipe


def resolve_method(registry: Any, base_class: type, method: Any, settings: dict[str, Any]) -> Any:
    """Return the method with this name and these settings; an instance of `base_class` is returned as it is.

    Parameters
    ----------
    registry : Registry
        The methods by name, such as `ESTIMATORS`.
    base_class : type
        Class of all of these methods.
    method : object
        The argument of the caller.
    settings : dict
        Settings of a method that is given by name.

    Raises
    ------
    InputError
        TO201 for anything but a known name or an instance, TO202 for an unknown setting or settings beside an instance,
        TO203 for an invalid value.
    """
    for name in settings:
        hint = describe_row_argument(name)
        if hint is not None and not (method in registry and registry.has_setting(method, name)):
            raise InputError("TO202", f"`{name}` is not a setting of this call.", "", hint)
    if isinstance(method, base_class):
        if settings:
            raise InputError(
                "TO202",
                "Settings cannot be combined with an instance.",
                ", ".join(settings),
                "Set them on the instance, or pass the method by name.",
            )
        return method
    if not isinstance(method, str):
        is_list_of_methods = isinstance(method, (list, tuple)) and all(
            isinstance(item, (str, base_class)) for item in method
        )
        if is_list_of_methods:
            fix = f"Call it once per {registry.kind}."
        elif is_array(method):
            fix = f"Pass Predictions(y_true, y_prob) as one argument, then a name such as {registry.names()[0]!r}."
        else:
            fix = list_names(registry.names())
        raise InputError("TO201", f"{registry.kind} must be a name or an instance.", describe(method), fix)
    return registry.make(method, settings)


def add_seed(estimator: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Return the settings of an estimator, with the seed of the call if it is randomized and they have none.

    `rng` is that argument of the call. If it is a generator, the seed is drawn from `generator`, which is made from it.
    """
    if "rng" in settings or estimator not in ESTIMATORS or not ESTIMATORS.has_setting(estimator, "rng"):
        return settings
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    return settings | {"rng": seed}


def add_test_seed(test: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Return the settings of a test, with the seed of the call if the test or its statistic is randomized.

    A test is randomized if, for instance, it assigns rows to folds. `rng` and `generator` are as for `add_seed`.
    """
    if isinstance(test, str) and test == "consistency":
        return add_seed(settings.get("statistic", "ece"), settings, rng, generator)
    takes_seed = isinstance(test, str) and test in TESTS.names() and TESTS.has_setting(test, "rng")
    # Such a test has the name of the estimator whose value it tests.
    return add_seed(test, settings, rng, generator) if takes_seed else settings


def resolve_lens(rows: Predictions | Tally, lens: Any, method: Estimator | HypothesisTest | Recipe | None) -> Lens:
    """Return the given lens, else the method's own, else the default: positive for two classes, confidence for more."""
    if isinstance(lens, (list, tuple)):
        fix = "Call it once per lens; only test takes several, which it tests jointly."
        raise InputError("TO204", "This function takes one lens.", describe(lens), fix)
    if lens is not None:
        return as_lens(lens)
    if method is not None and rows.kind == "classes":
        several_classes_lens = getattr(method, "lens_of_several_classes", None) if rows.k > 2 else None
        if name := several_classes_lens or method.lens:
            return as_lens(name)
    return default_lens(rows)


def confidence_only_setting(rows: Predictions | Tally, requested: Any, lens: Lens) -> dict[str, bool]:
    """Return the setting of a result on the confidence of several classes that did not request this lens."""
    is_only_confidence = requested is None and rows.kind == "classes" and rows.k > 2 and str(lens) == "confidence"
    return {"confidence_only": True} if is_only_confidence else {}


def restrict_to_region(rows: Predictions | Tally, region: Any) -> Any:
    """Return the rows whose predictions lie in a region of the simplex; all rows if it is None.

    Parameters
    ----------
    rows : Predictions or Tally
        A tally has no rows, so that a region raises InputError TO403.
    region : str, mapping or callable, optional
        Restrict the analysis to rows whose predictions lie in a region: ``"confidence > 0.9 and class:cat >= 0.1"``. A
        mapping, ``{"class:cat": (0.2, 0.8)}``, or a function of the probabilities (n, K) that returns a boolean mask is
        accepted too.
    """
    if region is None:
        return rows
    if isinstance(rows, Tally):
        raise InputError(
            "TO403",
            "A region of the simplex needs the rows.",
            f"⟨region={describe(region)}⟩ of a tally",
            "Use ⟨mode='exact'⟩.",
        )
    return select_region(rows, region)


def reported_call_settings(
    rng: Any, rows: Predictions | Tally, weight_kind: str | None, region: Any = None, lens: Lens | None = None
) -> dict[str, Any]:
    """Return what a result reports as settings of its call: seed, region, kind of weights, and the event of the lens.

    The event is the second of two classes that are not only numbered 0 and 1.
    """
    settings: dict[str, Any] = {"seed": int(rng) if isinstance(rng, (int, np.integer)) else "generator"}
    if isinstance(region, str):
        settings["region"] = region
    elif region is not None:
        settings["region"] = getattr(region, "__name__", None) or describe(region)
    if weight_kind == "frequency" or (isinstance(rows, Predictions) and rows.weight is not None):
        settings["weight_kind"] = weight_kind or "importance"
    has_event = isinstance(lens, (Positive, Canonical)) and rows.kind == "classes" and rows.k == 2
    if has_event and [str(name) for name in rows.classes] != ["0", "1"]:
        settings["event"] = str(rows.classes[1])
    return settings


def data_notes(*rows: Predictions | Tally, source: Any = None) -> list[Note]:
    """Return the notes of validation and of the plausibility checks of one or several data sets.

    Tallies have none of their own, but `source`, from which a tally was made, may have notes on how it is read.
    """
    is_tallied = isinstance(source, Source) and any(isinstance(data, Tally) for data in rows)
    notes: list[Note] = list(source.notes) if is_tallied else []
    for preds in rows:
        if isinstance(preds, Predictions):
            notes += [*preds.notes, *plausibility_notes(preds)]
    return notes
