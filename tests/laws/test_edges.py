"""Does every estimator give a number with a note, or a coded error, where data are at their worst?

Members come from the registry. A number may be infinite or absent only where a note says why.
"""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.slow_parameters import slow_except
from trueodds import InputError, Predictions
from trueodds.api.by_group import by_group
from trueodds.core.docstrings import docstring_sections
from trueodds.core.results import EXPLAINED_BY, Estimate
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.lens_by_name import as_lens, default_lens
from trueodds.lenses.view import View

RNG = np.random.default_rng(0)


def many_classes() -> Predictions:
    P = RNG.dirichlet(np.full(1000, 0.05), 30)
    return Predictions(RNG.integers(0, 1000, 30), P)


def votes(n: int = 40) -> Predictions:
    P = RNG.dirichlet([1, 1, 1], n)
    return Predictions(RNG.multinomial(7, P), P)


SETS = {
    "one row": Predictions([1], [0.7]),
    "two rows": Predictions([0, 1], [0.3, 0.8]),
    "two rows of one label": Predictions([1, 1], [0.3, 0.8]),
    "three rows of fifty classes": Predictions([0, 7, 49], RNG.dirichlet(np.ones(50), 3)),
    "two rows of votes": votes(2),
    "one cluster": Predictions([0, 1] * 15, RNG.random(30), cluster=[0] * 30),
    "every score 0": Predictions([0, 1] * 15, [0.0] * 30),
    "every score 1": Predictions([0, 1] * 15, [1.0] * 30),
    "one row of weight": Predictions([0, 1, 1], [0.2, 0.7, 0.9], weight=[0, 1e-9, 0]),
    "one row of three classes": Predictions([2], [[0.2, 0.5, 0.3]]),
    "one class came": Predictions([1] * 30, RNG.random(30)),
    "the other class came": Predictions([0] * 30, RNG.random(30)),
    "one of three classes came": Predictions([0] * 30, RNG.dirichlet([1, 1, 1], 30)),
    "all scores equal": Predictions([0, 1] * 15, [0.3] * 30),
    "all vectors equal": Predictions([0, 1, 2] * 10, [[0.2, 0.3, 0.5]] * 30),
    "all right": Predictions([0, 1] * 15, [0.0, 1.0] * 15),
    "all right, not sure": Predictions([0, 1] * 15, [0.1, 0.9] * 15),
    "all wrong": Predictions([1, 0] * 15, [0.0, 1.0] * 15),
    "all wrong of three": Predictions([1, 2, 0] * 10, np.tile(np.eye(3), (10, 1))),
    "scores on edges": Predictions(np.arange(33) % 2, np.arange(33) % 11 / 10),
    "two scores": Predictions([0, 1, 1, 0, 1, 0], [0.25, 0.25, 0.25, 0.75, 0.75, 0.75]),
    "a thousand classes, thirty rows": many_classes(),
    "votes": votes(),
    "one row of votes": votes(1),
    "shares without counts": Predictions([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]], [0.6, 0.2, 0.5]),
    "confidence alone": Predictions.from_confidence([0.9, 0.6, 0.7], [1, 0, 1]),
    "several labels": Predictions.from_multilabel([[0, 1], [1, 1], [1, 0]], [[0.2, 0.9], [0.6, 0.7], [0.5, 0.5]]),
    "float16": Predictions(np.arange(40) % 2, RNG.random(40).astype(np.float16)),
    "weights of zero": Predictions([0, 1, 1], [0.2, 0.7, 0.9], weight=[0, 1, 0]),
    "clusters": Predictions(np.arange(40) % 2, RNG.random(40), cluster=np.arange(40) // 4),
}


def answer(name: str, preds: Predictions) -> Estimate | None:
    try:
        return to.measure(preds, name, resamples=10)
    except InputError as refusal:
        # The lens or the data do not suit the estimator, or no calibrator fits independent labels or a single row.
        if refusal.code in ("TO204", "TO205", "TO502", "TO507") and refusal.fix:
            return None
        raise


@pytest.mark.parametrize("name", slow_except(ESTIMATORS.names(), ["ece", "debiased_l2", "brier", "skce", "smece"]))
def test_the_worst_data_give_a_number_with_a_note_or_a_coded_error(name: str) -> None:
    n_answers = 0
    for what, preds in SETS.items():
        estimate = answer(name, preds)
        if estimate is None:
            continue
        n_answers += 1
        if not math.isfinite(estimate.value):
            assert estimate.notes, f"{what}: {estimate.value} without a note"
        if math.isnan(estimate.value):
            assert estimate.interval is None, what
            assert {"TN155", *EXPLAINED_BY} & {note.code for note in estimate.notes}, what
        for number in (estimate.noise_floor, estimate.debiased, *estimate.parts.values()):
            assert number is None or not math.isnan(number) or estimate.notes, what
        if estimate.interval:
            assert estimate.interval.low < estimate.interval.high, what
            assert not math.isnan(estimate.interval.low + estimate.interval.high), what
        else:
            assert estimate.notes, f"{what}: no interval, and no note that says why"
        json.dumps(estimate.to_dict(), allow_nan=False)
        assert re.search(r"\bnan\b", str(estimate)) is None or not math.isfinite(estimate.value), what
    assert n_answers >= 3, "what refuses nearly everything judges nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_except(TESTS.names(), ["omnibus", "spiegelhalter", "cox"]))
def test_a_p_value_of_the_worst_data_is_a_number_or_has_a_note(name: str) -> None:
    options = {"resamples": 19} if TESTS.has_setting(name, "resamples") else {}
    for what, preds in SETS.items():
        try:
            verdict = to.test(preds, name, **options)
        except InputError:
            continue
        lost = [
            number
            for number in (verdict.pvalue, verdict.statistic, verdict.effect)
            if number is not None and math.isnan(number)
        ]
        assert ("TN155" in [note.code for note in verdict.notes]) == bool(lost), what
        json.dumps(verdict.to_dict(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_a_difference_of_the_worst_data_is_a_number_or_has_a_note(name: str) -> None:
    for what, preds in SETS.items():
        try:
            comparison = to.compare(preds, preds[::-1], name, resamples=9)
        except InputError:
            continue
        if math.isnan(comparison.difference):
            assert (comparison.interval, comparison.pvalue) == (None, None), what
            assert {"TN155", *EXPLAINED_BY} & {note.code for note in comparison.notes}, what


@pytest.mark.parametrize("name", ["ece", "debiased_l2", "brier", "macroce", "o_e", "skce"])
def test_a_group_of_the_worst_data_has_a_number_or_a_note(name: str) -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 12):
        preds = Predictions(np.arange(n) % 2, rng.random(n), group=np.arange(n) // 2)
        groups = by_group(preds, name, resamples=9)
        lost = [group.label for group in groups.groups if math.isnan(group.estimate.value + group.pvalue + group.joint)]
        assert ("TN155" in [note.code for note in groups.notes]) == bool(lost)
        assert all(gap.interval is None for gap in groups.gaps if math.isnan(gap.difference))


def test_a_debiased_error_of_two_rows_is_undefined_and_has_no_interval() -> None:
    estimate = to.measure(Predictions([0, 1], [0.3, 0.8]), "debiased_l2")
    assert (str(estimate.value), estimate.interval) == ("nan", None)
    assert {"TN112", "TN155"} <= {note.code for note in estimate.notes}


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_float16_and_float32_give_the_number_of_their_float64_values(name: str) -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1, 1, 1], 60).astype(np.float32)
    counts = rng.multinomial(9, P.astype(np.float64) / P.astype(np.float64).sum(axis=1, keepdims=True))
    labels = counts if ESTIMATORS.load(name).null_draws_of == "votes" else rng.integers(0, 3, 60)
    lens = ESTIMATORS.load(name).lens
    for dtype in (np.float16, np.float32):
        narrow = P.astype(dtype)
        a, b = (
            to.measure(Predictions(labels, x, sum_tolerance=0.01), name, lens=lens, interval=None).value
            for x in (narrow, narrow.astype(np.float64))
        )
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15) or (math.isnan(a) and math.isnan(b))


# Settings with sums of their own. `dirichlet_kde` compares a sample of so many rows.
SUMS: list[tuple[str, dict[str, object]]] = [
    *((name, {}) for name in ESTIMATORS.names() if name != "dirichlet_kde"),
    ("ece_linear", {"bins": 5, "partition": "equal-mass"}),
    ("debiased_l2", {"form": "kumar"}),
    ("mmce", {"form": "weighted"}),
    ("skce", {"form": "block", "kernel": "gaussian"}),
    ("truthful", {"form": "quantile"}),
    ("rps", {"normalize": True}),
]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(name, settings, marks=[pytest.mark.slow] if name.endswith("_recalibrated") else [])
        for name, settings in SUMS
    ],
)
def test_sums_of_many_narrow_scores_are_those_of_their_float64_values(name: str, settings: dict[str, object]) -> None:
    # torchmetrics: float16 with n > 65,504 gives exactly 0.0. Of these scores, 1 − p and p² round in their own dtype.
    rng = np.random.default_rng(1)
    index, drawn = rng.integers(0, 15, 70_000), rng.random(70_000)
    estimator = ESTIMATORS.make(name, settings)
    for dtype in (np.float16, np.float32):
        p = np.linspace(0.03, 0.97, 15).astype(dtype)[index]
        narrow, wide = (View(scores, drawn < p**2, name="positive") for scores in (p, p.astype(np.float64)))
        value = estimator.value(wide)
        assert value != 0
        assert estimator.value(narrow) == pytest.approx(value, rel=1e-12)
        if name != "spherical":  # its noise floor rounds 1 − p in the dtype of p
            floors = [estimator.expected_if_calibrated(view) or 0.0 for view in (narrow, wide)]
            assert floors[0] == pytest.approx(floors[1], rel=1e-12)


def test_the_default_lens_of_every_kind_is_known() -> None:
    assert {default_lens(preds).name for preds in SETS.values()} == {"positive", "confidence", "classwise"}


def views_of_vectors_and_cells() -> tuple[View, View]:
    """A view with a vector per row, and one of cells that hold many rows."""
    preds = Predictions(np.arange(40) % 3, np.random.default_rng(0).dirichlet(np.ones(3), 40))
    (vectors,), (scores,) = (as_lens(lens).views(preds) for lens in ("canonical", "confidence"))
    return vectors, scores.pool(np.rint(scores.p * 10).astype(int), 11)


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_refuses_vectors_and_cells_if_and_only_if_its_docstring_says_so(name: str) -> None:
    estimator, (vectors, cells) = ESTIMATORS.make(name, {}), views_of_vectors_and_cells()
    refused_views = " ".join(docstring_sections(estimator.__doc__)["Raises"].split())
    if "vector per row" in refused_views:
        with refused("TO205", fix="classwise"):
            estimator(vectors)
    else:
        estimator(vectors)
    if "cells of many rows" in refused_views:
        with refused("TO205", "cells"):
            estimator(cells)
    elif "recalibrated" not in name:  # it refuses a view of one of several classes, whether of rows or cells
        estimator(cells)
