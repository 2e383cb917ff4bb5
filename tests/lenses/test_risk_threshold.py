"""Is the risk of a threshold that was chosen for a target at most the target, as often as the level says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

import trueodds as to
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.lenses.risk_threshold import find_threshold

Floats = NDArray[np.float64]


def constant(c: Floats) -> Floats:
    """A risk that is everywhere just above the target, so that every threshold is wrong."""
    return np.full(len(c), 0.1001)


def crossing(c: Floats) -> Floats:
    """A risk of .04 above the confidence .5 and of .2 below: the target is met up to a coverage of .8."""
    return np.where(c > 0.5, 0.04, 0.2)


def decreasing(c: Floats) -> Floats:
    """A risk that falls from .4 to 0, so that the target is met for the upper half."""
    return 0.4 * (1 - c)


def data_set(
    rng: np.random.Generator, risk: Callable[[Floats], Floats], n: int, size: int, steps: int
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Confidences on (0, 1], in `steps` if not 0, and errors, both similar among the rows of a question.

    Questions have `size` rows on average, of unequal number. Errors have a latent correlation of .6 within questions.
    """
    question = np.sort(rng.integers(0, max(n // size, 1), n)) if size > 1 else np.arange(n)

    def similar_normal(correlation: float) -> Floats:
        shared = rng.normal(size=question.max() + 1)[question]
        own: Floats = rng.normal(size=n)
        return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own

    c = norm.cdf(similar_normal(0.5))
    c = np.ceil(c * steps) / steps if steps else c
    return c, norm.cdf(similar_normal(0.6 if size > 1 else 0.0)) < risk(c), question


@pytest.mark.slow
@pytest.mark.parametrize("risk", [constant, crossing, decreasing])
@pytest.mark.parametrize(("size", "steps"), [(1, 0), (1, 10), (4, 0), (4, 10)])
def test_the_risk_exceeds_the_target_in_few_data_sets(risk: Callable[[Floats], Floats], size: int, steps: int) -> None:
    """The number of data sets with a threshold of too large a risk is at most Binomial(100, .05): 12 with 99.9 %."""
    grid = np.arange(1, 10_001) / 10_000
    grid = np.ceil(grid * steps - 1e-9) / steps if steps else grid
    n_wrong = 0
    for seed in range(100):
        c, is_wrong, question = data_set(np.random.default_rng([seed, 7]), risk, 500, size, steps)
        cluster = question if size > 1 else None
        result = find_threshold(Predictions.from_confidence(c, ~is_wrong, cluster=cluster), max_risk=0.1)
        if result.threshold is not None:
            assert result.risk is not None
            assert result.risk < 0.1
            n_wrong += risk(grid[grid >= result.threshold - 1e-12]).mean() > 0.1 + 1e-9
    assert n_wrong <= binom.ppf(0.999, 100, 0.05)


def test_choosing_by_the_observed_risk_would_exceed_the_target_often() -> None:
    """The scenario can tell: the largest coverage with an observed risk of 10 % has a larger risk in half of them."""
    n_wrong = 0
    for seed in range(100):
        c, is_wrong, _ = data_set(np.random.default_rng([seed, 7]), decreasing, 500, 1, 0)
        order = np.argsort(-c)
        observed = np.cumsum(is_wrong[order]) / np.arange(1, 501)
        threshold = c[order][np.flatnonzero(observed <= 0.1)[-1]]
        n_wrong += 0.2 * (1 - threshold) > 0.1
    assert n_wrong > 30


def test_most_of_the_coverage_is_found() -> None:
    """Risk .04 up to the confidence .5: with 2,000 rows the thresholds reach at least half of the answers."""
    coverages = []
    for seed in range(20):
        c, is_wrong, _ = data_set(np.random.default_rng([seed, 8]), crossing, 2000, 1, 0)
        coverages.append(find_threshold(Predictions.from_confidence(c, ~is_wrong), max_risk=0.1).coverage)
    assert np.mean(coverages) > 0.6  # of .8, where the risk is 10 %; the sd of one risk at .65 is .007
    assert min(coverages) > 0.5


def test_one_threshold_is_the_exact_binomial_test() -> None:
    """Without errors (1 − .05)^n ≤ .05 from n = 59 on; one error in 93 has the limit .0500, in 92 a larger one."""
    for n, n_wrong, is_accepted in ((59, 0, True), (58, 0, False), (93, 1, True), (92, 1, False)):
        assert (binom.cdf(n_wrong, n, 0.05) <= 0.05) == is_accepted
        result = find_threshold(Predictions.from_confidence([0.9] * n, [0] * n_wrong + [1] * (n - n_wrong)))
        assert (result.threshold == 0.9) == is_accepted
        assert result.coverage == float(is_accepted)
    assert "at least 59 independent answers" in str(find_threshold(Predictions.from_confidence([0.9], [1])))


def literal_threshold(c: Floats, is_wrong: NDArray[np.bool_], max_risk: float, delta: float) -> float | None:
    """The fallback procedure written out: levels of single thresholds, of which rejected ones are passed on."""
    scores = np.unique(c)[::-1]
    n, errors = (np.array([x[c >= score].sum() for score in scores]) for x in (np.ones(len(c), dtype=int), is_wrong))
    n_starts = 1 if len(c) < 300 else 2 if len(c) < 1000 else 5
    testable = np.flatnonzero((1 - max_risk) ** n <= delta / n_starts)
    starts = {len(n) - 1}
    if len(testable):
        first = n[testable[0]]
        starts = {int(np.argmax(n >= first * (len(c) / first) ** (j / n_starts))) for j in range(n_starts)}
    found, level = None, 0.0
    for i, pvalue in enumerate(binom.cdf(errors, n, max_risk)):
        level += delta / len(starts) if i in starts else 0.0
        if level and pvalue <= level:
            found = float(scores[i])
        else:
            level = 0.0
    return found


@pytest.mark.parametrize("n", [30, 150, 299, 300, 999, 1000, 2500])
def test_the_threshold_is_that_of_the_fallback_procedure(n: int) -> None:
    rng = np.random.default_rng(n)
    thresholds = []
    for _ in range(12):
        c = rng.integers(1, 60, n) / 60
        is_wrong = rng.random(n) < rng.choice([0.02, 0.1, 0.3]) * (1 - c)
        found = find_threshold(Predictions.from_confidence(c, ~is_wrong), max_risk=0.1, level=0.9).threshold
        assert found == literal_threshold(c, is_wrong, 0.1, 0.1)
        thresholds.append(found)
    assert len(set(thresholds)) > 2


def test_the_rule_has_the_counts_of_its_rows() -> None:
    rng = np.random.default_rng(3)
    c = rng.integers(1, 21, 900) / 20
    right = rng.random(900) < 0.8 + 0.2 * c
    result = find_threshold(Predictions.from_confidence(c, right), max_risk=0.1, n_queries=1000)
    assert result.threshold is not None
    answers = c >= result.threshold
    assert (result.answered, result.coverage) == (answers.sum(), pytest.approx(answers.sum() / 1000))
    assert result.risk == pytest.approx((~right[answers]).mean())
    document = result.to_dict()
    assert document["schema"] == "trueodds.threshold/1"
    assert (document["n"], document["kind"], document["lens"]) == (1000, "error", "confidence")


def test_copies_in_clusters_and_weights_count_once_and_frequencies_as_rows() -> None:
    """Each of 300 rows three times: as clusters no more is found than in single rows, as frequencies as in copies."""
    rng = np.random.default_rng(1)
    c = rng.integers(1, 11, 300) / 10
    right, three = rng.random(300) < 0.9 + 0.1 * c, np.repeat(np.arange(300), 3)
    single = find_threshold(Predictions.from_confidence(c, right), max_risk=0.1)
    clustered = find_threshold(Predictions.from_confidence(c[three], right[three], cluster=three), max_risk=0.1)
    copies = find_threshold(Predictions.from_confidence(c[three], right[three]), max_risk=0.1)
    weights = Predictions.from_confidence(c, right, weight=np.full(300, 3.0))
    weighted = to.threshold(weights, max_risk=0.1, weight_kind="importance")
    frequent = to.threshold(weights, max_risk=0.1, weight_kind="frequency")
    assert single.threshold is not None
    assert clustered.coverage <= single.coverage <= copies.coverage
    assert (weighted.threshold, weighted.coverage) == (single.threshold, pytest.approx(single.coverage))
    assert (frequent.threshold, frequent.coverage) == (copies.threshold, pytest.approx(copies.coverage))


def test_weights_of_whole_numbers_keep_the_promise() -> None:
    """Weights of 1 and 5 are no counts of rows: 50 and 50 without an error are 300²/1,300 = 69.2 rows.

    The limit of n rows without an error is 1 − .05^(1/n): .0424 for 69.2 rows, where 300 rows would allow .0099.
    """
    preds = Predictions(np.ones(100, dtype=int), np.full(100, 0.9), weight=np.repeat([1.0, 5.0], 50))
    for risk in ("error", "fnr"):
        found, missed = (to.threshold(preds, max_risk=r, risk=risk, lens="positive") for r in (0.0425, 0.0423))
        assert (found.threshold, missed.threshold) == (0.9, None)


def test_the_rows_that_suffice_have_enough_clusters() -> None:
    """Twelve clusters of 40 sure rows, one of them wrong, and 40 others, half of them wrong; at most 15 % may be wrong.

    At the level .05/5 a rule is tested from 29 clusters on, as .85^28 = .0106: with 29 · 960/12 = 2,320 rows.
    """
    wrong = np.tile(np.r_[np.arange(40) == 0, np.arange(40) % 2], 12)
    c, cluster = np.tile(np.repeat([0.9, 0.6], 40), 12), np.repeat(np.arange(12), 80)
    result = find_threshold(Predictions.from_confidence(c, 1 - wrong, cluster=cluster), max_risk=0.15)
    assert (result.threshold, result.required) == (None, 2320)


def test_the_order_of_rows_and_rows_of_weight_zero_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    c = rng.integers(1, 11, 400) / 10
    right, cluster = rng.random(400) < 0.9 + 0.1 * c, rng.integers(0, 200, 400)
    first = find_threshold(Predictions.from_confidence(c, right, cluster=cluster), max_risk=0.1)
    order = rng.permutation(400)
    other = find_threshold(
        Predictions.from_confidence(
            np.append(c[order], 1.0), np.append(right[order], False), cluster=np.append(cluster[order], 999),
            weight=np.append(np.ones(400), 0.0),
        ),
        max_risk=0.1,
    )  # fmt: skip
    assert first.threshold is not None
    assert str(first) == str(other)


@pytest.mark.parametrize("settings", [{"max_risk": 0}, {"max_risk": 5}, {"level": 0.5}, {"level": 1}, {"level": "95"}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    answers = to.read_answers([{"c": 0.9, "correct": True}, {"c": 0.6, "correct": False}], confidence="c")
    with refused("TO203"):
        answers.threshold(**settings)


def test_abstentions_count_in_the_coverage_and_few_clusters_have_a_note() -> None:
    rows = [{"c": 0.9, "correct": i % 50 > 0, "skip": False, "q": i % 8} for i in range(400)]
    rows += [{"skip": True, "q": i} for i in range(100)]
    result = to.read_answers(rows, confidence="c", abstained="skip").threshold()
    assert str(result) == "confidence ≥ 0.9 answers 80%, observed risk 0.02 · risk ≤ 0.05 with 95% confidence"
    clustered = to.read_answers(rows, confidence="c", abstained="skip", question="q").threshold()
    assert clustered.threshold is None
    assert [note.code for note in clustered.notes] == ["TN271"]


def test_the_false_negative_rate_is_a_quantile_of_the_events_by_order_statistics() -> None:
    """P(Bin(100, .05) ≤ 1) = .037 and P(Bin(100, .05) ≤ 2) = .118, so that one of 100 events may be missed."""
    p = np.arange(1, 101) / 101
    result = to.threshold(to.Predictions(np.append(np.ones(100), 0), np.append(p, 0.001)), risk="fnr")
    assert (result.threshold, result.risk, result.answered) == (p[1], 0.01, 99)
    assert to.threshold(np.ones(59), np.full(59, 0.3), risk="fnr").threshold == 0.3
    fewer = to.threshold([1] * 58 + [0] * 58, [0.3] * 116, risk="fnr")
    assert (fewer.threshold, fewer.coverage, fewer.risk, fewer.required) == (None, 0, None, 118)
    assert "requires at least 59 independent events; about 118 rows like these may suffice" in str(fewer)


def test_the_false_positive_rate_mirrors_the_false_negative_rate() -> None:
    """One of 100 non-events may be selected, and rows above the second highest of them are."""
    p = np.arange(1, 101) / 101
    y, scores = np.append(np.zeros(100), [1, 1]), np.append(p, [0.985, 0.5])
    result = to.threshold(y, scores, risk="fpr")
    assert (result.threshold, result.risk, result.answered) == (0.985, 0.01, 2)  # 99 / 101 = .980 is not selected
    assert to.threshold(y, scores, risk="fpr", lens="class:1").threshold == 0.985
    at_the_top = to.threshold([0] * 100 + [1] * 100, [0.5] * 100 + [0.4] * 100, risk="fpr")
    assert (at_the_top.threshold, at_the_top.risk) == (None, None)
    assert [note.code for note in at_the_top.notes if note.code == "TN298"] == ["TN298"]
    assert str(at_the_top).startswith("no threshold that selects a row has a false positive rate ≤ 0.05")


def rates(rng: np.random.Generator, n: int, size: int, digits: int) -> tuple[Floats, NDArray[np.int64], Any]:
    """Scores and events in clusters of `size` rows, whose scores and outcomes have a common part."""
    cluster = np.arange(n) // size
    latent = (rng.normal(size=n) + rng.normal(size=n)[cluster] * (size > 1)) / (1 + (size > 1)) ** 0.5
    y = (rng.random(n) < 0.3).astype(np.int64)
    return norm.cdf(latent + y).round(digits), y, cluster if size > 1 else None


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size", "digits"), [(400, 1, 9), (1000, 1, 1), (1200, 4, 9)])
@pytest.mark.parametrize("risk", ["fnr", "fpr"])
def test_the_rates_exceed_the_target_in_few_data_sets(n: int, size: int, digits: int, risk: Any) -> None:
    """At most Binomial(200, .05) data sets have a threshold of too large a rate: 20 with 99.9 %."""
    scores, y, _ = rates(np.random.default_rng(1), 400_000, 1, digits)
    scores = np.sort(scores[y == (risk == "fnr")])
    n_wrong = n_found = 0
    for seed in range(200):
        p, labels, cluster = rates(np.random.default_rng([seed, 5]), n, size, digits)
        result = to.threshold(to.Predictions(labels, p, cluster=cluster), max_risk=0.1, risk=risk)
        if result.threshold is not None:
            n_found += 1
            below = np.searchsorted(scores, result.threshold) / len(scores)
            n_wrong += (below if risk == "fnr" else 1 - below) > 0.101
    assert n_wrong <= binom.ppf(0.999, 200, 0.05)
    assert n_found > 195 or digits == 1


def test_the_required_rows_are_those_of_the_binomial_test() -> None:
    """6 of 200 are wrong, P(Bin(200, .05) ≤ 6) = .12. For 6.5/201 errors at the level .05/5, with a power of 80 %:

    ((2.326 √(.05 · .95) + .842 √(.0323 · .9677)) / (.05 − .0323))² = 1,379 answers.
    """
    rule = find_threshold(Predictions.from_confidence([0.9] * 200, [0] * 6 + [1] * 194))
    assert rule.threshold is None
    assert rule.required == pytest.approx(1379, abs=8)
    twice = find_threshold(Predictions.from_confidence([0.9] * 200 + [0.3] * 200, [0] * 6 + [1] * 194 + [0] * 200))
    assert twice.required == pytest.approx(2 * rule.required, abs=1)  # only every second row is answered
    many_wrong = find_threshold(Predictions.from_confidence([0.9] * 200, [0] * 20 + [1] * 180))
    assert many_wrong.required is None


def test_a_class_can_be_selected_with_a_precision() -> None:
    """Of the rows with a probability of .9, 5 of 200 are no event: P(Bin(200, .06) ≤ 5) = .018."""
    y, p = [1] * 195 + [0] * 5 + [0] * 200, [0.9] * 200 + [0.1] * 200
    assert to.threshold(y, p, max_risk=0.06, lens="positive").threshold == 0.9
    assert to.threshold(y, p, max_risk=0.06).coverage == 1  # the confidence is .9 everywhere, with 5 errors


def test_what_has_no_single_score_or_outcome_is_refused() -> None:
    three = to.Predictions([0, 1, 2] * 30, np.full((90, 3), 1 / 3))
    with refused("TO205", "3 classes", fix="lens='class:0'"):
        to.threshold(three, risk="fnr")
    with refused("TO205"):
        to.threshold(three, lens="classwise")
    with refused("TO205", "shares"):
        to.threshold(to.Predictions([[3, 7], [5, 5]], [0.2, 0.4]), risk="fpr")
    with refused("TO403"):
        to.threshold(to.tally(three))
    with refused("TO203"):
        to.threshold(three, risk="recall")
