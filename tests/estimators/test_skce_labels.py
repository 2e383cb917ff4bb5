"""Is the SKCE of labels read as they are the SKCE of their residuals, to rounding, ties included?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.core.typing import Array
from trueodds.estimators.skce import SquaredKernelError
from trueodds.kernels.random_labels import draw_labels_by_row
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

# Every pair is rounded by at most 2⁻⁴³ of the largest weights, and the mean over pairs by no more; the largest of
# these weights squared is 3.6 times the mean square of two different ones.
ROUNDED = 2 * 3.6 * 2.0**-43


def table(n: int, sharp: float = 1.0, k: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, sharp), n)
    return np.array([rng.choice(k, p=p) for p in P]), P


def by_residuals(linear: Any, view: View, labels: Array) -> Array:
    """Draw by draw from sums, as any draws are read."""
    rows, w = linear.rows, view.w[:, None]
    y = np.eye(view.p.shape[1])[labels.T]
    return linear.statistic(view.w[None, rows], (w * view.p)[None, rows], (w * y)[:, rows])


@pytest.mark.parametrize("sharp", [1.0, 0.03])  # with sharp rows most labels never move
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["unbiased", "biased", "block"])
def test_they_are_the_errors_of_their_residuals(form: str, weighted: bool, sharp: float) -> None:
    y, P = table(310, sharp)
    w = np.random.default_rng(1).integers(0, 4, 310) * 0.7 if weighted else None
    view = View(P, np.eye(4)[y], w)
    linear = SquaredKernelError(form=form, block_size=40).cell_statistic(view)
    labels = draw_labels_by_row(P, 5, 0, 12)
    assert linear.statistic_from_labels is not None
    values, truth = linear.statistic_from_labels(labels), by_residuals(linear, view, labels)
    np.testing.assert_allclose(values, truth, rtol=1e-12, atol=ROUNDED)


def test_the_observed_labels_tie_with_themselves_to_the_last_bit() -> None:
    # Nearly sure predictions: what remains of U is far smaller than the sums that it is the difference of.
    y, P = table(200, 0.01)
    P = np.round(P, 9) / np.round(P, 9).sum(axis=1, keepdims=True)
    linear = SquaredKernelError(bandwidth=1.0).cell_statistic(View(P, np.eye(4)[y]))
    assert linear.statistic_from_labels is not None
    values = linear.statistic_from_labels(np.repeat(y[:, None], 3, axis=1).astype(np.uint8))
    assert values.tolist() == [linear.value()] * 3


def test_certain_and_correct_predictions_are_no_surprise() -> None:
    y = np.arange(60) % 3
    preds = to.Predictions(y, np.eye(3)[y])
    assert to.test(preds, "skce", resamples=19).pvalue == 1.0
    assert to.test(preds, "consistency", statistic="skce", resamples=19).pvalue == 1.0


@pytest.mark.parametrize("lens", ["canonical", "top-2", "groups:[[0,1],[2],[3]]"])
def test_one_set_of_labels_serves_every_way_of_reading_it(lens: str) -> None:
    y, P = table(80)
    preds = to.Predictions(y, P)
    estimator = SquaredKernelError()
    estimand = Estimand(estimator, as_lens(lens), as_lens(lens).views(preds))
    (view,) = estimand.views
    (fast,) = null_draws(preds, [estimand], 7, np.random.default_rng(3))
    # A kernel given as a function is read from sums.
    width = estimator.cell_statistic(view).kernel.bandwidth
    callable_kernel = SquaredKernelError(
        kernel=lambda A, B: np.exp(-np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2)) / width)
    )
    assert callable_kernel.cell_statistic(view).statistic_from_labels is None
    (slow,) = null_draws(preds, [Estimand(callable_kernel, estimand.lens, estimand.views)], 7, np.random.default_rng(3))
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=ROUNDED)


def test_fractional_outcomes_and_scores_are_read_from_sums() -> None:
    votes = View(np.full((6, 3), 1 / 3), np.full((6, 3), 1 / 3))
    assert SquaredKernelError().cell_statistic(votes).statistic_from_labels is None
    assert (
        SquaredKernelError(kernel="gaussian").cell_statistic(View([0.2, 0.7], [0.0, 1.0])).statistic_from_labels is None
    )


def test_more_labels_than_are_held_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    y, P = table(50)
    preds, lens = to.Predictions(y, P), as_lens("canonical")
    estimand = Estimand(SquaredKernelError(), lens, lens.views(preds))
    fractions: list[float] = []
    (full,) = null_draws(preds, [estimand], 10, np.random.default_rng(0))
    monkeypatch.setattr("trueodds.resampling.label_draws.MAX_BLOCK_LABELS", 50 * 4)
    (parts,) = null_draws(preds, [estimand], 10, np.random.default_rng(0), progress=fractions.append)
    np.testing.assert_allclose(parts, full, rtol=1e-12, atol=1e-15)
    assert fractions == [0.4, 0.8, 1.0]
