"""Do means from few labels have the values worked by hand, valid intervals, and errors for input that does not fit?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.core.typing import Array
from trueodds.resampling.few_labels.judged_rows import SampledRows
from trueodds.resampling.few_labels.powered_mean import (
    prediction_powered,
    recalibrate_judge,
    rogan_gladen,
    standardized_logits,
)

Y = np.array([1.0, 1.0, 0.0, 1.0])


def sample(n: int, m: int, stratum: Array | None = None, cluster: Array | None = None) -> SampledRows:
    """The first m of n rows are labeled, with equal weights."""
    codes = np.zeros(n, dtype=int) if stratum is None else stratum
    return SampledRows(n, np.arange(m), np.full(m, n / m), True, codes, np.bincount(codes).astype(float), cluster)


def judged(n: int, m: int, seed: int = 0) -> tuple[Array, Array]:
    """Labels of the first m of n rows, and the scores of an overconfident judge."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0.5, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    return np.where(np.arange(n) < m, y, np.nan), 1 / (1 + np.exp(-2 * logit))


def test_the_tuned_mean_is_the_one_worked_by_hand() -> None:
    # y = 1, 1, 0, 1 and f = 1, 1, 0, 0 with many unlabeled rows of mean .6: λ = cov/var = .125/.25 = .5, .75 + .5 · .1.
    n = 1_000_000
    f = np.zeros(n)
    f[:2], f[4:600_002] = 1, 1
    mean = prediction_powered(Y, f, sample(n, 4))
    assert mean.tuning == pytest.approx(0.5, abs=1e-5)
    assert mean.value == pytest.approx(0.80, abs=1e-5)
    # Residuals (y − .75) − (f − .5)/2 = 0, 0, −.5, .5: .5 over m² = 16, times m/(m − 2) = 2; the gap .1² is added in
    # units of the variance of f, 1/4.
    assert mean.se**2 == pytest.approx(0.5 / 16 * 2 * (1 + 0.01 / 0.25), rel=1e-4)


def test_the_mean_of_ten_rows_is_the_one_worked_by_hand() -> None:
    # A = 2.5 (y − .75); B = 2.5 (f − .5) − (f − .6) with a label, else −(f − .6): ΣAB = 1.875, ΣB² = 3.65.
    mean = prediction_powered(Y, np.array([1, 1, 0, 0, 1, 1, 1, 1, 0, 0.0]), sample(10, 4))
    assert mean.tuning == pytest.approx(1.875 / 3.65)
    assert mean.value == pytest.approx(0.75 + 0.1 * 1.875 / 3.65)


def test_poststratification_weights_the_strata_by_their_rows() -> None:
    # Stratum 0 has 2 of 4 labels and a quarter of the rows, with means .5 and 1: .25 · .5 + .75 · 1.
    stratum = np.array([0, 0, 1, 1, *[0] * 8, *[1] * 28])
    label = np.array([1, 0, 1, 1, *[np.nan] * 36])
    result = to.prediction_powered_mean(label, np.full(40, 0.5), sampling="random", stratum=stratum)
    assert result.value == pytest.approx(0.875)
    assert result.settings["strata"] == 2


def test_the_weights_of_labels_are_inverse_probabilities() -> None:
    # (1/.5 + 0/.25) / (1/.5 + 1/.25) = 1/3; Kish: 6²/(4 + 16) = 1.8.
    label, probability = [1.0, 0.0, None, None, None, None], [0.5, 0.25, 0.25, 0.25, 0.25, None]
    result = to.prediction_powered_mean(label, [0.5] * 6, probability=probability)
    assert result.value == pytest.approx(1 / 3)
    assert result.n_effective == pytest.approx(1.8)


def test_known_error_rates_give_the_value_worked_by_hand() -> None:
    # (.7 + .75 − 1) / (.9 + .75 − 1) = .45/.65
    answers = np.repeat([1, 0], [700, 300])
    result = to.prediction_powered_mean(None, answers, sensitivity=(90, 100), specificity=(75, 100))
    assert result.value == pytest.approx(0.45 / 0.65)
    assert result.method == "rogan-gladen"
    assert result.interval.low < 0.692 < result.interval.high


def test_the_interval_of_known_error_rates_is_wilsons_where_the_judge_never_errs() -> None:
    # With se = sp = 1 from very many rows, Lang and Reiczigel's interval is that of Agresti and Coull.
    _, interval = rogan_gladen(30, 100, (10**9, 10**9), (10**9, 10**9), 0.95)
    z2 = 1.959964**2
    n, p = 100 + z2, (30 + z2 / 2) / (100 + z2)
    assert interval.low == pytest.approx(p - math.sqrt(z2 * p * (1 - p) / n), abs=1e-5)
    assert interval.high == pytest.approx(p + math.sqrt(z2 * p * (1 - p) / n), abs=1e-5)


def test_labels_alone_have_wilsons_interval() -> None:
    # Wilson (1927), 9 of 10: [0.5958, 0.9821] as in R's binom::binom.wilson.
    result = to.prediction_powered_mean([*[1.0] * 9, 0.0, None], [0.5] * 10 + [0.6], sampling="random")
    assert result.method == "labels alone"
    assert [note.code for note in result.notes] == ["TN295"]
    assert (result.interval.low, result.interval.high) == pytest.approx((0.5958, 0.9821), abs=1e-4)


def test_the_interval_of_a_difference_is_that_of_bonett_and_price() -> None:
    # D = 1 in 4, −1 in 1 and 0 in 15 of 20 rows: mean 3/20, variance (5 − 9/20)/20, times m/(m − 1); 20/22 of the mean.
    a, b = np.repeat([1.0, 0, 1, 0], [4, 1, 8, 7]), np.repeat([0.0, 1, 1, 0], [4, 1, 8, 7])
    result = to.prediction_powered_difference(a, np.full(20, 0.5), b, np.full(20, 0.5), sampling="random")
    assert result.value == pytest.approx(0.15)
    half_width = 2.0930 * math.sqrt((5 - 9 / 20) / 20 / 19 + 2 / 22**2)
    center = 0.15 * 20 / 22
    assert (result.interval.low, result.interval.high) == pytest.approx(
        (center - half_width, center + half_width), abs=1e-4
    )


def test_labels_needed_is_the_number_worked_by_hand() -> None:
    # .25/(.05/1.96)² = 384.1 for a useless judge and infinitely many rows; with 10,000 rows and no judge the same.
    label = np.where(np.arange(10_000) < 100, np.arange(10_000) % 2, np.nan)
    result = to.prediction_powered_mean(label, np.full(10_000, 0.5), sampling="random")
    assert result.labels_needed(0.05) == 385
    with pytest.raises(to.InputError, match=r"TO224.*0\.0098"):  # 1.96 · .5/√10,000
        result.labels_needed(0.009)


def test_equal_labels_have_wilsons_interval_and_are_planned_with_two_of_either_class() -> None:
    # 30 of 30: Wilson's lower limit is 30/(30 + 1.96²). 10 clusters: t with 9 degrees of freedom, 10/(10 + 2.262²).
    label = np.where(np.arange(3000) < 30, 1.0, np.nan)
    score = np.tile([0.2, 0.6], 1500)
    result = to.prediction_powered_mean(label, score, sampling="random")
    assert (result.value, result.interval.high) == (1, 1)
    assert result.interval.low == pytest.approx(30 / (30 + 1.959964**2), abs=1e-6)
    rate = 32 / 34
    assert result.labels_needed(0.05) == math.ceil(rate * (1 - rate) * (1.959964 / 0.05) ** 2)
    clustered = to.prediction_powered_mean(label, score, sampling="random", cluster=np.arange(3000) // 3)
    assert clustered.interval.low == pytest.approx(10 / (10 + 2.262157**2), abs=1e-6)


def test_each_row_is_predicted_without_the_labels_of_its_fold() -> None:
    label, score = judged(400, 50)
    rows, y = sample(400, 50), label[:50]
    first = recalibrate_judge(score, y, rows, np.random.default_rng(0))
    assert first is not None
    changed = y.copy()
    changed[7] = 1 - y[7]
    second = recalibrate_judge(score, changed, rows, np.random.default_rng(0))
    assert second is not None
    fold = first == second  # the rows of the fold of row 7
    assert fold[7]
    assert 40 < fold.sum() < 130


def test_rows_of_a_cluster_are_in_one_fold() -> None:
    label, score = judged(400, 50)
    cluster = np.arange(400) // 5
    rows = sample(400, 50, cluster=cluster)
    changed = label[:50].copy()
    changed[7] = 1 - changed[7]
    first, second = (recalibrate_judge(score, y, rows, np.random.default_rng(0)) for y in (label[:50], changed))
    assert first is not None
    assert (first == second)[cluster == cluster[7]].all()


def test_scores_of_zero_and_one_are_finite_logits() -> None:
    logits = standardized_logits(np.array([0, 0.1, 0.5, 0.9, 1]))
    assert logits is not None
    assert np.isfinite(logits).all()
    assert logits[0] - logits[1] == pytest.approx(logits[3] - logits[4])
    assert standardized_logits(np.full(5, 0.3)) is None


def test_a_label_in_every_row_is_the_plain_mean() -> None:
    label, score = judged(60, 60)
    result = to.prediction_powered_mean(label, score, sampling="random")
    assert result.value == pytest.approx(np.mean(label))
    assert "every row has a label" in result.notes[0].text


def test_texts_and_booleans_are_labels() -> None:
    label, score = judged(300, 100)
    texts = [None if np.isnan(y) else "yes" if y else "no" for y in label]
    values = {
        to.prediction_powered_mean(labels, score, sampling="random").value for labels in (label, texts, list(label))
    }
    assert len(values) == 1


def test_one_cluster_per_row_changes_nothing_but_the_folds() -> None:
    rows = sample(200, 40)
    clustered = sample(200, 40, cluster=np.arange(200))
    label, score = judged(200, 40)
    plain, same = (prediction_powered(label[:40], score, each) for each in (rows, clustered))
    assert plain.se == pytest.approx(same.se)
    assert (plain.n_effective, plain.degrees) == (same.n_effective, same.degrees)
    alone, same = (prediction_powered(label[:40], None, each) for each in (rows, clustered))
    assert alone.value == same.value


BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "no sampling": ("TO220", {"sampling": None}),
    "both": ("TO220", {"probability": np.full(200, 0.5)}),
    "another sampling": ("TO203", {"sampling": "convenience"}),
    "a score above 1": ("TO102", {"score": np.r_[2.0, np.full(199, 0.5)]}),
    "a missing score": ("TO103", {"score": np.r_[np.nan, np.full(199, 0.5)]}),
    "no label": ("TO101", {"label": np.full(200, np.nan)}),
    "no labels": ("TO101", {"label": None}),
    "grades as labels": ("TO116", {"label": np.r_[3.0, np.full(199, np.nan)]}),
    "a shorter score": ("TO107", {"score": np.full(199, 0.5)}),
    "one label": ("TO221", {"label": np.r_[1.0, np.full(199, np.nan)]}),
    "one cluster": ("TO221", {"cluster": np.zeros(200)}),
    "a missing cluster": ("TO112", {"cluster": [None, *range(199)]}),
    "a stratum without labels": ("TO221", {"stratum": (np.arange(200) >= 100).astype(int)}),
    "probability 0": ("TO222", {"sampling": None, "probability": np.r_[0.0, np.full(199, 0.5)]}),
    "probability above 1": ("TO222", {"sampling": None, "probability": np.full(200, 1.5)}),
    "probability 1 without label": ("TO222", {"sampling": None, "probability": np.ones(200)}),
    "an unknown probability": ("TO222", {"sampling": None, "probability": np.r_[np.nan, np.full(199, 0.5)]}),
    "a level of 95": ("TO203", {"level": 95}),
    "labels and error rates": ("TO225", {"sensitivity": (90, 100), "specificity": (75, 100)}),
}


@pytest.mark.parametrize("case", BAD)
def test_input_that_does_not_fit_has_a_code(case: str) -> None:
    code, changes = BAD[case]
    label, score = judged(200, 50)
    arguments = {"label": label, "score": score, "sampling": "random"} | changes
    with pytest.raises(to.InputError, match=code):
        to.prediction_powered_mean(**arguments)


@pytest.mark.parametrize(
    ("sensitivity", "specificity"), [((51, 100), (51, 100)), ((0.9, 100), (75, 100)), (0.9, 0.75), ((90, 100), None)]
)
def test_error_rates_that_say_nothing_are_refused(sensitivity: Any, specificity: Any) -> None:
    with pytest.raises(to.InputError, match=r"TO225|TO203"):
        to.prediction_powered_mean(None, [1, 0, 1], sensitivity=sensitivity, specificity=specificity)


def test_known_error_rates_need_yes_or_no() -> None:
    with pytest.raises(to.InputError, match="TO225"):
        to.prediction_powered_mean(None, [0.5, 0, 1], sensitivity=(90, 100), specificity=(75, 100))


def test_labels_of_the_highest_scores_are_refused() -> None:
    label, score = judged(1000, 1000)
    chosen = np.where(score >= np.median(score), label, np.nan)
    with pytest.raises(to.InputError, match="TO223"):
        to.prediction_powered_mean(chosen, score, sampling="random")


def test_a_row_with_one_of_two_labels_is_refused() -> None:
    label, score = judged(200, 50)
    other = label.copy()
    other[3] = np.nan
    with pytest.raises(to.InputError, match=r"TO226.*row 3"):
        to.prediction_powered_difference(label, score, other, score, sampling="random")


@pytest.mark.slow
def test_intervals_cover_the_mean_where_the_judge_is_good() -> None:
    # 300 sets: a coverage of 95 % gives at least 272 with probability .999.
    covers, width, alone = 0, 0.0, 0.0
    for seed in range(300):
        label, score = judged(1000, 60, seed)
        result = to.prediction_powered_mean(label, score, sampling="random")
        covers += result.interval.low <= 0.5752 <= result.interval.high  # E expit(N(.5, 2²)), by quadrature
        width += result.interval.high - result.interval.low
        assert result.labels_alone is not None
        alone += result.labels_alone.interval.high - result.labels_alone.interval.low
    assert covers >= 272
    assert width < 0.9 * alone
