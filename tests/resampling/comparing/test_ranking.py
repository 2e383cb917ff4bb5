"""Rankings of several models: significant pairs, simultaneous intervals, and false orders."""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.resampling.comparing.models import odds, rows
from trueodds.resampling.comparison.differences import SimultaneousDifferences


def models(n: int = 800, seed: int = 0) -> dict[str, to.Predictions]:
    """A calibrated model, the same with a little noise, and one that is far off."""
    eta, y = rows(n, seed)
    noise = np.random.default_rng(seed + 1).normal(0, 0.05, n)
    return {
        "far": to.Predictions(y, odds(-eta)),
        "exact": to.Predictions(y, odds(eta)),
        "near": to.Predictions(y, odds(eta + noise)),
    }


def test_the_smallest_error_comes_first_and_what_is_open_is_stated() -> None:
    ranking = to.compare(models(), "brier")
    assert ranking.order[2] == "far"
    assert set(ranking.settled) == {("exact", "far"), ("near", "far")}
    assert ranking.unsettled == (ranking.order[:2],)
    line = str(ranking)
    assert "not significant: " + ", ".join(ranking.order[:2]) in line
    assert "95% jointly" in line
    assert "paired" in line


def test_a_list_names_its_models_by_letters_and_names_by_names() -> None:
    several = list(models(100).values())
    assert set(to.compare(several, "brier", resamples=100).models) == {"a", "b", "c"}
    assert list(to.compare(several, "brier", resamples=100, names=["x", "y", "z"]).models) == ["x", "y", "z"]
    assert to.compare(several[:2], "brier", resamples=100).pairs[0].names == ("a", "b")


def test_joint_intervals_are_wider_than_single_ones_and_no_wider_than_bonferroni_s() -> None:
    every = models()
    joint = to.compare(every, "brier")
    for pair in joint.pairs:
        a, b = (every[name] for name in pair.names)
        alone, third = (to.compare(a, b, "brier", level=level) for level in (0.95, 1 - 0.05 / 3))
        width = pair.interval.high - pair.interval.low
        assert width > 1.05 * (alone.interval.high - alone.interval.low)
        assert width <= 1.001 * (third.interval.high - third.interval.low)
        assert alone.pvalue <= pair.pvalue <= min(1.0, 3 * alone.pvalue) * (1 + 1e-9)
        assert pair.interval.level == pytest.approx(joint.pairs[0].interval.level)
    assert joint.settings["simultaneous"] == "max-t"


class Drawn:
    """What `SimultaneousDifferences` reads of a pair."""

    method = "mover"

    def __init__(self, draws: np.ndarray) -> None:
        self.draws = draws
        self.a = self.b = type("Side", (), {"resampled": None})()


def test_one_and_the_same_difference_thrice_is_one() -> None:
    # the largest of three equal deviations is each of them: no correction is due, and p stays up to resampling
    draws = np.random.default_rng(0).normal(size=4000)
    joint = SimultaneousDifferences([Drawn(draws)] * 3)
    assert joint.level(0.95) == pytest.approx(0.95, abs=0.01)
    assert joint.adjusted_pvalue(0.04) == pytest.approx(0.04, abs=0.01)


def test_independent_differences_are_corrected_like_sidak() -> None:
    # 3 independent ones: (1 − .05)^(1/3) = .98305; and 1 − (1 − .02)³ = .0588. 20,000 draws tell them to about .002
    rng = np.random.default_rng(0)
    joint = SimultaneousDifferences([Drawn(sample) for sample in rng.normal(size=(3, 20_000))])
    assert joint.level(0.95) == pytest.approx(0.95 ** (1 / 3), abs=0.003)
    assert joint.adjusted_pvalue(0.02) == pytest.approx(1 - 0.98**3, abs=0.006)


def test_the_interval_excludes_0_where_the_adjusted_p_is_small_enough() -> None:
    rng = np.random.default_rng(1)
    joint = SimultaneousDifferences([Drawn(sample) for sample in rng.normal(size=(3, 999))])
    alone = 1 - joint.level(0.95)
    assert joint.adjusted_pvalue(alone * 0.999) <= 0.05 < joint.adjusted_pvalue(alone * 1.05)


def test_too_few_draws_leave_bonferroni() -> None:
    joint = SimultaneousDifferences([Drawn(np.arange(9.0)), Drawn(np.arange(9.0))])
    assert joint.level(0.95) == 0.975


def test_models_of_other_rows_are_compared_as_such() -> None:
    every = models(300)
    every["elsewhere"] = models(200, seed=5)["exact"]
    ranking = to.compare(every, "brier", resamples=200)
    assert {pair.names for pair in ranking.pairs if not pair.paired} == {
        (name, "elsewhere") for name in ("far", "exact", "near")
    }
    assert ranking.settings["rows"] == "paired where the rows are the same"
    assert {"TN226", "TN227"} <= {note.code for note in ranking.notes}


def test_swaps_of_several_models_are_corrected_for_their_number() -> None:
    ranking = to.compare(models(200), "brier", null="swap", resamples=99)
    assert [pair.pvalue for pair in ranking.pairs if "far" in pair.names] == pytest.approx([3 / 100] * 2)


@pytest.mark.slow
def test_equal_models_are_seldom_put_in_order() -> None:
    # Four models with the same true Brier score: some pair is settled in at most 5 % of 120 data sets, with 99.9 % in
    # at most 16; without correction for six pairs it would be some 20 %.
    settled = 0
    for seed in range(120):
        eta, y = rows(200, seed)
        noise = np.random.default_rng([seed, 1]).normal(0, 0.5, (4, 200))
        ranking = to.compare(
            [to.Predictions(y, odds(eta + shift)) for shift in noise], "brier", resamples=300, rng=seed
        )
        settled += bool(ranking.settled)
    assert settled <= 16


def test_results_are_frozen_and_rendered_as_html() -> None:
    ranking = to.compare(models(60), "brier", resamples=50)
    one = to.compare(*list(models(60).values())[:2], "brier", resamples=50)
    for answer in (ranking, one):
        with pytest.raises(AttributeError):
            answer.lens = "x"
        assert answer._repr_html_().startswith("<div ")
        assert "TN226" in answer._repr_html_()
    assert float(one) == one.difference
