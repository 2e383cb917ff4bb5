"""Is the net benefit that of decision curve analysis, and does its interval cover the true one?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.core.typing import Array
from trueodds.estimators.threshold_scores import MurphyLoss, NetBenefit
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def test_by_hand() -> None:
    # t = .2, odds 1/4: two of the three treated have the event, so 2/4 − 1/4 · 1/4
    view = View([0.9, 0.2, 0.5, 0.1], [1, 1, 0, 1])
    assert float(NetBenefit(threshold=0.2)(view)) == pytest.approx(0.4375, rel=1e-14)
    # weights 1 to 4: (1 + 2 − 3/4)/10
    weighted = View([0.9, 0.2, 0.5, 0.1], [1, 1, 0, 1], [1, 2, 3, 4])
    assert float(NetBenefit(threshold=0.2)(weighted)) == pytest.approx(0.225, rel=1e-14)


def test_counts_by_hand_and_treating_everyone() -> None:
    # At a threshold of 10 %, 65 true and 225 false positives among 902 rows with 87 events: (65 − 225 · 0.1/0.9)/902 =
    # 0.0443; for treating everyone (87 − 815 · 0.1/0.9)/902 = −0.0039
    p, y = np.repeat([0.4, 0.05], [290, 612]), np.repeat([1, 0, 1, 0], [65, 225, 22, 590])
    estimate = NetBenefit(threshold=0.1)(View(p, y))
    assert float(estimate) == pytest.approx(40 / 902, rel=1e-12)
    assert estimate.parts["treat_all"] == pytest.approx((87 - 815 / 9) / 902, rel=1e-12)


def test_a_row_at_the_threshold_is_treated() -> None:
    assert NetBenefit(threshold=0.3).value(View([0.3, 0.1], [1, 0])) == 0.5
    assert NetBenefit(threshold=0.3).value(View([np.nextafter(0.3, 0), 0.1], [1, 0])) == 0.0


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.7])
def test_it_is_the_event_rate_minus_the_scaled_elementary_score(threshold: float) -> None:
    rng = np.random.default_rng(0)
    view = View(rng.random(300), rng.random(300) < 0.4, rng.random(300))
    loss = MurphyLoss(threshold=threshold).value(view)
    event_rate = float(view.w @ view.y / view.total)
    expected = event_rate - loss / (2 * (1 - threshold))
    assert NetBenefit(threshold=threshold).value(view) == pytest.approx(expected, rel=1e-12)


def test_the_references_are_treating_no_one_and_everyone() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(200)
    view = View(p, rng.random(200) < p)
    everyone = NetBenefit(threshold=0.2).value(View(np.ones(200), view.y))
    own, difference = (NetBenefit(threshold=0.2, reference=r)(view) for r in ("none", "all"))
    assert float(difference) == pytest.approx(float(own) - everyone, rel=1e-12)
    assert own.parts["treat_all"] == pytest.approx(everyone, rel=1e-12)
    assert own.parts["treated"] == pytest.approx((p >= 0.2).mean(), rel=1e-12)
    assert (own.settings, difference.settings) == ({"threshold": 0.2}, {"threshold": 0.2, "reference": "all"})


def test_a_vote_share_is_two_weighted_rows() -> None:
    one, two = View([0.6], [0.7]), View([0.6, 0.6], [1, 0], [0.7, 0.3])
    for reference in ("none", "all"):
        score = NetBenefit(threshold=0.3, reference=reference)
        assert float(score(one)) == pytest.approx(float(score(two)), rel=1e-14)


@pytest.mark.parametrize("reference", ["none", "all"])
def test_the_expected_value_is_the_mean_over_resampled_labels(reference: Any) -> None:
    # 4.5 standard errors of 400 draws
    rng = np.random.default_rng(3)
    p = rng.random(100)
    score = NetBenefit(threshold=0.3, reference=reference)
    values = [score.value(View(p, rng.random(100) < p)) for _ in range(400)]
    assert score.expected_if_calibrated(View(p, p)) == pytest.approx(np.mean(values), abs=4.5 * np.std(values) / 20)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_no_other_prediction_has_a_higher_net_benefit_on_average_than_the_truth(threshold: float) -> None:
    for q in (0.05, 0.5, 0.8, 0.93):
        score = NetBenefit(threshold=threshold)
        values = [score.value(View([p], [q])) for p in np.linspace(0, 1, 101)]
        assert max(values) == pytest.approx(score.value(View([q], [q])), abs=1e-12)


def test_larger_is_better_in_a_comparison() -> None:
    rng = np.random.default_rng(2)
    p = rng.random(800)
    y = rng.random(800) < p
    good, bad = to.Predictions(y, p), to.Predictions(y, 1 - p)
    assert to.compare(good, bad, "net_benefit").better == "a"
    assert to.compare(bad, good, "net_benefit").better == "b"


def test_few_events_or_nonevents_above_the_threshold_are_noted() -> None:
    p, y = np.r_[np.full(20, 0.8), np.full(20, 0.1)], np.r_[np.ones(16), np.zeros(22), 1, 1]
    (note,) = NetBenefit(threshold=0.5)(View(p, y)).notes
    assert note.code == "TN123"
    assert note.text.startswith("About 4 nonevents have predictions above the threshold 0.5")
    (note,) = NetBenefit(threshold=0.5, reference="all")(View(p, y)).notes
    assert note.text.startswith("About 2 events have predictions below the threshold 0.5")
    assert NetBenefit(threshold=0.05)(View(p, y)).notes == ()
    assert to.measure(y, p, "net_benefit", threshold=0.9).interval is None
    # Bootstrap intervals from so few covered the truth in 68 % of data sets with rare events.
    assert to.measure(y, p, "net_benefit", threshold=0.5).interval is None
    assert to.measure(y, p, "net_benefit", threshold=0.5, interval="bca").interval is not None
    assert to.measure(y, p, "net_benefit", threshold=0.05).interval is not None


def test_vectors_cells_and_invalid_settings_are_refused() -> None:
    with refused("TO205", "canonical", fix="confidence"):
        (view,) = as_lens("canonical").views(to.Predictions([0], [[0.5, 0.3, 0.2]]))
        NetBenefit()(view)
    with refused("TO205", "1 cells of 2 rows"):
        NetBenefit()(View([0.2, 0.7], [0, 1]).pool(np.zeros(2, int), 1))
    for threshold in (0, 1, math.nan, "0.5", None):
        with refused("TO203", repr(threshold)):
            NetBenefit(threshold=threshold)  # type: ignore[arg-type]
    with refused("TO203", "'nobody'"):
        NetBenefit(reference="nobody")  # type: ignore[arg-type]


# The interval


def cohort(rng: np.random.Generator, n: int, clusters: int = 0) -> tuple[Array, Array, Array | None]:
    """Outcomes, overconfident predictions, and clusters whose log odds have a standard deviation of 1."""
    marker = rng.normal(0, 1, n)
    cluster = np.arange(n) % clusters if clusters else None
    shift = rng.normal(0, 1, clusters)[cluster] if clusters else 0
    y = rng.random(n) < 1 / (1 + np.exp(1.6 - 0.9 * marker - shift))
    return y, 1 / (1 + np.exp(1.3 - 1.35 * marker)), cluster


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threshold", "reference", "clusters"),
    [(0.1, "none", 0), (0.2, "all", 0), (0.3, "none", 50)],
)
def test_the_interval_covers_the_true_net_benefit(threshold: float, reference: Any, clusters: int) -> None:
    # The interval from the Murphy loss, with a fixed event rate, covered 46 % at 0.1 and 83 % at 0.3. Of 150 intervals
    # with a coverage of 93 %, fewer than 130 cover with probability 0.1 %.
    y, p, _ = cohort(np.random.default_rng(10**6), 400_000, 40_000 if clusters else 0)
    truth = NetBenefit(threshold=threshold, reference=reference).value(View(p, y))
    covered = 0
    for seed in range(150):
        y, p, cluster = cohort(np.random.default_rng(seed), 600, clusters)
        preds = to.Predictions(y, p, cluster=cluster)
        estimate = to.measure(preds, "net_benefit", threshold=threshold, reference=reference, resamples=399)
        assert estimate.interval is not None
        covered += estimate.interval.low <= truth <= estimate.interval.high
    assert covered >= 130


def test_vectors_are_refused_also_if_an_interval_is_computed() -> None:
    """Regression: a TypeError, because the number of outcomes was counted before the view was checked."""
    preds = to.Predictions(np.arange(90) % 3, np.full((90, 3), 1 / 3))
    for interval in ("auto", None):
        with refused("TO205", "canonical", fix="confidence"):
            to.measure(preds, "net_benefit", threshold=0.3, lens="canonical", interval=interval)
