"""Is it noted that scores differ from a bin edge only by rounding, so that their storage changes the result?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from trueodds.binning.uniform import edge_rounding_notes, sample_scores
from trueodds.estimators import ESTIMATORS
from trueodds.kernels.bins import Bins
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.row_sources import SAMPLE_SIZE
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import notes_on_edges

# With 5 bins 0.2 is the edge of the first bin, (0, 0.2], and 0.25 is in the second. The first bin has 5 rows of mean
# 0.2 and rate 1, the second 5 of mean 0.25 and rate 0: (0.8 + 0.25)/2 = 0.525. As float32, 0.2 is 0.2000000030, in the
# second bin: |0.225 − 0.5| = 0.275.
P = np.array([0.2] * 5 + [0.25] * 5)
Y = np.array([1] * 5 + [0] * 5)


def estimate(p: np.ndarray, **settings: Any) -> tuple[float, list[str]]:
    result = to.measure(Y, p, "ece", interval=None, **({"bins": 5} | settings))
    return round(result.value, 3), [note.text for note in result.notes if note.code == "TN315"]


def test_float32_scores_on_an_edge_are_counted_and_unchanged() -> None:
    assert estimate(P) == (0.525, [])
    value, (text,) = estimate(P.astype(np.float32))
    assert value == 0.275
    assert "5 of 10 values" in text
    assert "to float32" in text


def test_both_remedies_work() -> None:
    p = P.astype(np.float32)
    assert estimate(np.round(p.astype(float), 6)) == (0.525, [])
    assert estimate(p, partition="equal-mass")[1] == []


def test_a_score_that_rounding_leaves_in_the_bin_of_its_edge_is_not_counted() -> None:
    assert estimate(P.astype(np.float16)) == (0.525, [])  # 0.2 as float16 is 0.19995
    assert estimate(P.astype(np.float32), closed="left") == (0.275, [])  # [0.2, 0.4) has both scores in either type
    assert estimate(1 - (1 - P)) == (0.525, [])  # 0.19999999999999996


def test_a_complement_that_falls_below_its_edge_is_counted_in_left_closed_bins() -> None:
    assert estimate(P, closed="left") == (0.275, [])
    value, (text,) = estimate(1 - (1 - P), closed="left")
    assert value == 0.525
    assert "such as 1 − p" in text


def test_float16_scores_beyond_an_edge_are_counted() -> None:
    p = np.array([0.6] * 5 + [0.65] * 5)  # 0.6 as float16 is 0.60010
    assert estimate(p.astype(np.float16))[1] != []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_without_a_grid_get_no_note(dtype: type) -> None:
    # Of 100,000 uniform scores about 100,000 · 14 · 1e-7 = 0.2 lie within the rounding of float32 of an edge.
    rng = np.random.default_rng(0)
    p = rng.random(100_000).astype(dtype)
    y = rng.integers(0, 2, 100_000)
    assert "TN315" not in [note.code for note in to.measure(y, p, "ece", interval=None).notes]


@pytest.mark.parametrize(
    ("dtype", "k", "n", "most"),
    [
        # A thousandth of the scores, or three times the share 14 · 2^-10 of scores within the rounding of 14 edges
        (np.float32, 10, 2000, 1),
        (np.float16, 15, 1000, 41),
    ],
)
def test_few_scores_beyond_an_edge_get_no_note(dtype: Any, k: int, n: int, most: int) -> None:
    edges = np.arange(1, k) / k
    beyond = next(edge for edge in edges if float(dtype(edge)) > edge)
    for count in (most, most + 1):
        scores = np.full(n, 0.47, dtype)
        scores[:count] = dtype(beyond)
        notes = edge_rounding_notes(scores, lambda scores=scores: scores, Bins(np.arange(k + 1) / k))  # type: ignore[misc]
        assert [f"{count:,} of {n:,} values" in note.text for note in notes] == [True] * (count - most)


def test_bins_as_narrow_as_rounding_get_no_note() -> None:
    scores = np.full(10, 0.2, np.float32)
    for edges, count in (((0, 0.2, 1), 1), ((0, 0.2, 0.2 + 1e-8, 1), 0), ((0, 1), 0)):
        assert len(edge_rounding_notes(scores, lambda: scores, Bins(np.array(edges, float)))) == count


def test_every_result_with_fixed_bins_has_the_note() -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(2, 3, 300), 2).astype(np.float32)
    y = (rng.random(300) < p).astype(int)
    two_columns = np.stack([1 - p, p], axis=1)
    results = [
        to.measure(y, p, "mce", interval=None),
        to.measure(y, two_columns, "ece", lens="classwise", interval=None),
        to.measure(y, two_columns, "ece", lens="confidence", interval=None),
        to.test(y, p, "consistency", statistic="ece", resamples=99),
        to.draw((y, p), "reliability"),
        to.draw((y, p), "confidence_histogram"),
    ]
    assert all("TN315" in [note.code for note in result.notes] for result in results)
    for result in (to.measure(y, p, "brier", interval=None), to.draw((y, p), "corp")):
        assert "TN315" not in [note.code for note in result.notes]


def test_a_file_that_stores_float32_has_the_note_that_its_text_has_not(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": Y, "risk": P.astype(np.float32)})
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    codes = {
        name: [note.code for note in to.measure(to.read(tmp_path / name, probs="risk"), bins=5).notes]
        for name in ("a.csv", "a.parquet")
    }
    assert "TN315" not in codes["a.csv"]
    assert "TN315" in codes["a.parquet"]


def test_the_scores_of_many_rows_are_computed_only_if_some_are_within_rounding_of_an_edge() -> None:
    """Regression: `measure` without an interval took twice as long as without the note."""
    n = 3 * SAMPLE_SIZE
    largest = np.random.default_rng(0).uniform(0.5, 0.59, n).astype(np.float32)
    for confidences, is_noted in ((largest, False), (np.where(np.arange(n) % 3, largest, np.float32(0.6)), True)):
        P = np.stack([confidences, (1 - confidences) / 2, (1 - confidences) / 2], axis=1)
        preds = to.Predictions(np.zeros(n, dtype=int), P)
        estimand = Estimand.from_predictions(ESTIMATORS.make("ece", {"bins": 5}), as_lens("confidence"), preds)
        notes = notes_on_edges(preds, estimand)
        assert estimand.views[0].has_columns is is_noted
        assert [f"{n // 3:,} of {n:,} values" in note.text for note in notes] == [True] * is_noted


@pytest.mark.parametrize("k", [3, 20])  # short and long rows
def test_the_pass_over_all_rows_samples_the_same_scores_as_a_pass_over_the_sample(k: int) -> None:
    n = 3 * SAMPLE_SIZE + 5
    P = np.random.default_rng(k).dirichlet(np.ones(k), n).astype(np.float32)
    preds = to.Predictions(np.zeros(n, dtype=int), P / P.sum(axis=1, keepdims=True))
    (view,) = as_lens("confidence").views(preds)
    expected = preds.p[::3].max(axis=1)
    assert np.array_equal(sample_scores(view), expected)
    view.binned(Bins(np.arange(16) / 15))
    assert not view.has_columns
    assert np.array_equal(sample_scores(view), expected)


def test_the_scores_of_every_class_are_sampled() -> None:
    """Regression: of 4 classes, every 8th probability is always one of the first class."""
    n = 2 * SAMPLE_SIZE
    P = np.tile(np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32), (n, 1))
    result = to.measure(np.zeros(n, dtype=int), P, "ece", lens="classwise", bins=5, interval=None)
    assert [note.text.split(" values")[0] for note in result.notes if note.code == "TN315"] == ["32,768 of 65,536"]
