"""Do the terms of a proper score add up to it, with weights, votes and ties, and are they the literature's?"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.partition import Partition
from trueodds.binning.simplex_grid import Distinct, SimplexGrid
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.proper_scores import Brier, LogLoss
from trueodds.estimators.score_decomposition import DecomposableScore
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

FORTY_EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)
PARTITIONS: tuple[Partition | None, ...] = (
    None,
    Uniform(4),
    Uniform(4, "left"),
    EqualMass(3),
    MedianVariance(2),
    Distinct(),
)
JOINT: tuple[Partition | None, ...] = (None, MedianVariance(2), SimplexGrid(3), Distinct())
CR = "calibration-refinement"


def murphy_sum(terms: Any) -> float:
    outer = terms["reliability"] - terms["resolution"] + terms["uncertainty"]
    return float(outer + terms["within_bin_variance"] - terms["within_bin_covariance"])


def refinement_sum(terms: Any) -> float:
    return float(terms["calibration"] + terms["refinement"] + terms["within_bins"])


def same(a: float, b: float) -> bool:
    return a == pytest.approx(b, rel=1e-12, abs=1e-13)


# Reference numbers


def frame_view(name: str, low: float = 0.0) -> View:
    table = reference.frame(f"estimators/{name}.csv")
    return View(np.clip(table["p"], low, 1 - low), table["y"])


@pytest.mark.reference
def test_murphys_terms_are_the_reference_ones() -> None:
    truth = reference.estimators()
    short = {"reliability": "rel", "resolution": "res", "uncertainty": "unc",
             "within_bin_variance": "wbv", "within_bin_covariance": "wbc"}  # fmt: skip
    for key, view, partition in [
        ("c.murphy.ew10", frame_view("c_binary500"), Uniform(10)),
        ("c2.murphy.unique", frame_view("c2_binary500_ties"), Distinct()),
    ]:
        terms = Brier(decomposition="murphy", partition=partition).parts(view)
        for name, short_name in short.items():  # abs: the last two are rounding, 1e-32, for distinct scores
            assert terms[name] == pytest.approx(truth[key]["value"][short_name], rel=1e-10, abs=1e-30), (key, name)
        assert murphy_sum(terms) == pytest.approx(truth[key]["value"]["brier"], rel=1e-12)


@pytest.mark.reference
def test_the_corrected_terms_are_the_reference_ones() -> None:
    truth = reference.estimators()["c2.ferro_fricker.unique"]["value"]
    terms = Brier(decomposition="ferro-fricker", partition=Distinct()).parts(frame_view("c2_binary500_ties"))
    for name, short_name in (("reliability", "rel"), ("resolution", "res"), ("uncertainty", "unc")):
        assert terms[name] == pytest.approx(truth[short_name], rel=1e-10)


@pytest.mark.reference
def test_the_terms_of_log_loss_are_the_reference_ones() -> None:
    truth = reference.estimators()["c2clip01.logdecomp.unique"]["value"]
    terms = LogLoss(decomposition=CR, partition=Distinct()).parts(frame_view("c2_binary500_ties", 0.01))
    for name, short_name in (("calibration", "calibration_kl"), ("refinement", "refinement"),
                       ("uncertainty", "uncertainty"), ("resolution", "resolution")):  # fmt: skip
        assert terms[name] == pytest.approx(truth[short_name], rel=1e-10)
    assert abs(terms["within_bins"]) < 1e-14


def monotone_blocks(p: Array, y: Array) -> FixedEdges:
    """Pool-adjacent-violators written out; equal scores start in one block."""
    blocks: list[list[float]] = []  # lowest score, highest score, sum, count
    for score in np.unique(p):
        blocks.append([score, score, y[p == score].sum(), (p == score).sum()])
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][3] >= blocks[-1][2] * blocks[-2][3]:
            last = blocks.pop()
            blocks[-1] = [blocks[-1][0], last[1], blocks[-1][2] + last[2], blocks[-1][3] + last[3]]
    return FixedEdges((0.0, *((a[1] + b[0]) / 2 for a, b in itertools.pairwise(blocks)), 1.0))


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "score"),
    [
        ("c.corp_brier", "c_binary500", Brier),
        ("c.corp_log", "c_binary500", LogLoss),
        ("c2.corp_brier", "c2_binary500_ties", Brier),
    ],
)
def test_on_monotone_blocks_the_terms_are_those_of_corp(key: str, name: str, score: Any) -> None:
    # CORP recalibrates by monotone regression: what that gains is all of the score that is not refinement
    # on its blocks.
    truth = reference.estimators()[key]["value"]
    view = frame_view(name)
    partition = monotone_blocks(view.p, view.y)
    assert len(partition.edges) - 1 == truth["n_blocks"]
    terms = score(decomposition=CR, partition=partition).parts(view)
    assert terms["calibration"] + terms["within_bins"] == pytest.approx(truth["mcb"], rel=1e-10)
    assert terms["resolution"] == pytest.approx(truth["dsc"], rel=1e-10)
    assert terms["uncertainty"] == pytest.approx(truth["unc"], rel=1e-10)
    assert refinement_sum(terms) == pytest.approx(truth["score"], rel=1e-12)


# By hand


def test_murphys_terms_by_hand() -> None:
    # One bin of .2 (y 0) and .4 (y 1), one of .8 (y 1), halves at .5; rate 2/3.
    # REL = 2/3 (.3 − .5)² + 1/3 (.8 − 1)² = .04;  RES = 2/3 (1/6)² + 1/3 (1/3)² = 1/18;  UNC = 2/9
    # WBV = 2 (.1)²/3;  WBC = 2 · 2 (.1 · .5)/3;  together (.04 + .36 + .04)/3
    view = View([0.2, 0.4, 0.8], [0, 1, 1])
    terms = Brier(decomposition="murphy", partition=Uniform(2)).parts(view)
    assert terms == pytest.approx(
        {
            "reliability": 0.04,
            "resolution": 1 / 18,
            "uncertainty": 2 / 9,
            "within_bin_variance": 0.02 / 3,
            "within_bin_covariance": 0.2 / 3,
        },
        rel=1e-12,
    )
    assert murphy_sum(terms) == pytest.approx(0.44 / 3, rel=1e-12)
    # Ferro–Fricker: c = 2/3 · .5 · .5 / (2 − 1) = 1/6 from the first bin alone, v = (2/9) / (3 − 1) = 1/9
    fixed = Brier(decomposition="ferro-fricker", partition=Uniform(2)).parts(view)
    assert fixed["reliability"] == pytest.approx(0.04 - 1 / 6, rel=1e-12)
    assert fixed["resolution"] == pytest.approx(1 / 18 - 1 / 6 + 1 / 9, abs=1e-15)
    assert fixed["uncertainty"] == pytest.approx(1 / 3, rel=1e-12)
    # refinement = 2/3 · ¼ = 1/6 = 2/9 − 1/18
    split = Brier(decomposition=CR, partition=Uniform(2)).parts(view)
    assert split == pytest.approx({"calibration": 0.04, "refinement": 1 / 6, "within_bins": -0.06,
                                   "uncertainty": 2 / 9, "resolution": 1 / 18}, rel=1e-12)  # fmt: skip


def test_the_terms_of_log_loss_by_hand() -> None:
    # All said .25, half came: KL(½ ‖ ¼) = ½ log 2 + ½ log ⅔ = ½ log(4/3); refinement = uncertainty = log 2
    terms = LogLoss(decomposition=CR, partition=Distinct()).parts(View([0.25, 0.25], [0, 1]))
    assert terms["calibration"] == pytest.approx(0.5 * math.log(4 / 3), rel=1e-12)
    assert terms["refinement"] == terms["uncertainty"] == pytest.approx(math.log(2), rel=1e-14)
    assert terms["resolution"] == terms["within_bins"] == 0


def test_the_terms_of_vectors_by_hand() -> None:
    # Two cells: (.5, .5, 0) came as classes 0 and 1; (0, 0, 1) came as class 2.
    # Calibrated, and known: rates are as said.
    P, y = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [0, 1, 2]
    view = View(P, np.eye(3)[y])
    terms = Brier(decomposition=CR, partition=Distinct()).parts(view)
    # refinement 2/3 (1 − ½), uncertainty 1 − 3/9, resolution their difference
    assert terms == pytest.approx(
        {"calibration": 0, "refinement": 1 / 3, "within_bins": 0, "uncertainty": 2 / 3, "resolution": 1 / 3}
    )
    logs = LogLoss(decomposition=CR, partition=Distinct()).parts(view)
    assert logs["refinement"] == pytest.approx(2 / 3 * math.log(2), rel=1e-14)
    assert logs["uncertainty"] == pytest.approx(math.log(3), rel=1e-14)
    # and miscalibrated by (.2, −.2, 0) in a single cell: squared distance .08
    miscalibrated = View([[0.7, 0.3, 0.0]] * 2, np.eye(3)[[0, 1]])
    assert Brier(decomposition=CR, partition=Distinct()).parts(miscalibrated)["calibration"] == pytest.approx(
        0.08, rel=1e-12
    )


# The identity


def drawn(n: int, kind: str, seed: int, k: int = 2) -> View:
    """Decimal or raw scores, hard labels or votes, weights with zeros."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([0.7] * k, n) if kind == "floats" else rng.multinomial(10, [1 / k] * k, n) / 10
    Y = rng.multinomial(5, [1 / k] * k, n) / 5 if seed % 2 else np.eye(k)[rng.integers(0, k, n)]
    w = rng.integers(0, 3, n) * rng.choice([1.0, 0.37], n)
    w[0] = 1.0
    return View(P[:, 1], Y[:, 1], w) if k == 2 else View(P, Y, w)


@FORTY_EXAMPLES
@given(st.integers(1, 30), st.sampled_from(["floats", "tenths"]), st.integers(0, 10**6), st.sampled_from(PARTITIONS))
def test_the_terms_of_a_binary_score_add_up_to_it(n: int, kind: str, seed: int, partition: Partition | None) -> None:
    view = drawn(n, kind, seed)
    value = Brier().value(view)
    for name in ("murphy", "ferro-fricker"):
        assert same(murphy_sum(Brier(decomposition=name, partition=partition).parts(view)), value)
    for min_prob in (0.0, 0.01):
        loss = LogLoss(min_prob, decomposition=CR, partition=partition)
        for score in (Brier(decomposition=CR, partition=partition), loss):
            terms = score.parts(view)
            assert same(refinement_sum(terms), score.value(view)), terms  # an infinite score has an infinite term
            assert same(terms["uncertainty"] - terms["resolution"], terms["refinement"])


@FORTY_EXAMPLES
@given(st.integers(1, 30), st.sampled_from(["floats", "tenths"]), st.integers(0, 10**6), st.sampled_from(JOINT))
def test_the_terms_of_a_joint_score_add_up_to_it(n: int, kind: str, seed: int, partition: Partition | None) -> None:
    view = drawn(n, kind, seed, k=3)
    for score in (Brier(decomposition=CR, partition=partition), LogLoss(decomposition=CR, partition=partition)):
        terms = score.parts(view)
        assert same(refinement_sum(terms), score.value(view)), terms
        assert same(terms["uncertainty"] - terms["resolution"], terms["refinement"])
        assert terms["calibration"] > -1e-14
        assert terms["resolution"] > -1e-14


@pytest.mark.parametrize("score", [Brier(decomposition="murphy"), Brier(decomposition=CR), LogLoss(decomposition=CR)])
def test_whole_weights_are_repetition_and_rows_of_weight_zero_are_none(score: DecomposableScore) -> None:
    view = drawn(30, "tenths", 3)
    weights = np.random.default_rng(0).integers(1, 4, 30)
    many = np.repeat(np.arange(30), weights)
    weighted = score.parts(View(view.p, view.y, weights))
    assert score.parts(View(view.p[many], view.y[many])) == pytest.approx(weighted, rel=1e-12, abs=1e-14)
    # a wrong sure call of weight 0 in a bin of its own would be an infinite loss
    padded = View(np.append(view.p, 0.0), np.append(view.y, 1.0), np.append(weights, 0))
    assert score.parts(padded) == pytest.approx(weighted, rel=1e-12, abs=1e-14)
    assert score(padded).settings["occupied_bins"] == score(View(view.p, view.y, weights)).settings["occupied_bins"]


@pytest.mark.parametrize("name", ["murphy", "ferro-fricker", CR])
def test_the_terms_of_binary_cells_are_those_of_their_rows(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = View(rng.random(300), rng.random(300) < 0.4, rng.random(300))
    grid = Uniform(100).fit(rows)
    index = grid.index(rows.partition_values)
    cells = rows.pool(index, grid.size)
    at = (np.unique(index) + 1) / 100
    sums = {name: cells.sums(name) for name in ("ww", "wpp", "wpy", "wyy", "wwv", "wwr")}
    rebuilt = View(cells.p, cells.y, cells.w, n=cells.n, sums=sums, partition_values=at)
    score = Brier(decomposition=name, partition=Uniform(10))
    assert score.parts(rebuilt) == pytest.approx(score.parts(rows), rel=1e-10, abs=1e-14)


def test_half_precision_is_summed_in_double() -> None:
    # torchmetrics: float16 with n > 65,504 rows gives exactly 0
    rng = np.random.default_rng(7)
    p = (rng.integers(0, 17, 70_000) / 16).astype(np.float16)
    y = (rng.random(70_000) < 0.5).astype(float)
    for score in (Brier(decomposition="murphy"), LogLoss(0.001, decomposition=CR)):
        assert score.parts(View(p, y)) == score.parts(View(p.astype(np.float64), y))


# Bias


def outcomes(n: int) -> Array:
    """All 2ⁿ of them."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


@pytest.mark.parametrize("weights", [np.ones(9), np.array([1, 2, 0.5, 3, 1, 1, 0.2, 2, 1])], ids=["even", "uneven"])
def test_the_corrected_reliability_is_right_on_average_whatever_the_weights(weights: Array) -> None:
    # Exact: the mean over all 2⁹ outcomes, each with its probability. The truth q misses p by .1, −.2 and .05.
    p = np.repeat([0.2, 0.5, 0.8], [4, 3, 2])
    q = np.repeat([0.3, 0.3, 0.85], [4, 3, 2])
    truth = float(weights @ (p - q) ** 2 / weights.sum())
    expectations = {"murphy": 0.0, "ferro-fricker": 0.0}
    for y in outcomes(9):
        chance = np.prod(np.where(y == 1, q, 1 - q))
        for name in expectations:
            terms = Brier(decomposition=name, partition=Distinct()).parts(View(p, y, weights))
            expectations[name] += chance * terms["reliability"]
    assert expectations["ferro-fricker"] == pytest.approx(truth, rel=1e-12)
    # and the plug-in is off by the mean variance of the rates
    noise = sum(
        weights[p == s].sum()
        * (weights[p == s] ** 2).sum()
        / weights[p == s].sum() ** 2
        * q[p == s][0]
        * (1 - q[p == s][0])
        for s in (0.2, 0.5, 0.8)
    )
    assert expectations["murphy"] == pytest.approx(truth + noise / weights.sum(), rel=1e-12)


@pytest.mark.slow
def test_the_corrected_uncertainty_and_resolution_are_right_on_average() -> None:
    # Rows drawn anew: score .2 or .8 by a fair coin, outcome with chance .3 or .9. E y = .6, so the uncertainty is .24
    # and the resolution .3² = .09. A bin that holds one row is not corrected: of 40 rows that has the chance 80 · 2⁻⁴⁰.
    # The mean of 2,000 draws within 4.5 of its standard errors.
    rng = np.random.default_rng(1)
    corrected, plain = [], []
    for _ in range(2000):
        high = rng.random(40) < 0.5
        view = View(np.where(high, 0.8, 0.2), rng.random(40) < np.where(high, 0.9, 0.3))
        for name, into in (("ferro-fricker", corrected), ("murphy", plain)):
            terms = Brier(decomposition=name, partition=Distinct()).parts(view)
            into.append([terms["resolution"], terms["uncertainty"]])
    error = 4.5 * np.std(corrected, axis=0) / 2000**0.5
    assert (np.abs(np.mean(corrected, axis=0) - [0.09, 0.24]) < error).all()
    assert (np.abs(np.mean(plain, axis=0) - [0.09, 0.24]) > error).any()


def test_votes_carry_less_noise_than_labels() -> None:
    # Rows that all have the vote .5 leave nothing to correct; as two rows of half the weight they would.
    voted = Brier(decomposition="ferro-fricker", partition=Distinct()).parts(View([0.3] * 4, [0.5] * 4))
    plain = Brier(decomposition="murphy", partition=Distinct()).parts(View([0.3] * 4, [0.5] * 4))
    assert voted == pytest.approx(plain, rel=1e-12)


# The edge of the data


@pytest.mark.parametrize("partition", PARTITIONS, ids=str)
@pytest.mark.parametrize(
    ("p", "y"),
    [([0.3], [1]), ([0.3] * 5, [0] * 5), ([0.0, 1.0], [0, 1]), ([0.0, 1.0], [1, 0]), ([0.25, 0.5, 0.75], [0, 1, 1])],
    ids=["one row", "one class, all alike", "all right", "all wrong", "on the edges"],
)
def test_any_data_give_terms_that_are_numbers(p: list[float], y: list[int], partition: Partition | None) -> None:
    for name in ("murphy", "ferro-fricker", CR):
        score = Brier(decomposition=name, partition=partition)
        assert all(math.isfinite(term) for term in score.parts(View(p, y)).values())
        score(View(p, y)).to_dict()
    terms = LogLoss(decomposition=CR, partition=partition).parts(View(p, y))
    assert not any(math.isnan(term) for term in terms.values())
    assert refinement_sum(terms) == pytest.approx(LogLoss().value(View(p, y)), rel=1e-12)


def test_the_impossible_is_calibration_where_the_entire_cell_predicted_it_and_else_variation_within() -> None:
    all_of_it = LogLoss(decomposition=CR, partition=Uniform(2)).parts(View([0.0, 0.0, 0.9], [1, 0, 1]))
    assert all_of_it["calibration"] == math.inf
    assert all_of_it["within_bins"] == 0
    one_of_them = LogLoss(decomposition=CR, partition=Uniform(2)).parts(View([0.0, 0.4, 0.9], [1, 0, 1]))
    assert math.isfinite(one_of_them["calibration"])
    assert one_of_them["within_bins"] == math.inf


def test_a_thousand_classes_and_thirty_rows() -> None:
    rng = np.random.default_rng(2)
    view = View(rng.dirichlet(np.ones(1000), 30), np.eye(1000)[rng.integers(0, 1000, 30)])
    for score in (Brier(decomposition=CR), LogLoss(decomposition=CR)):
        assert refinement_sum(score.parts(view)) == pytest.approx(score.value(view), rel=1e-12)


def test_a_few_rows_per_bin_are_noted() -> None:
    view = View([0.1, 0.1, 0.9], [0, 0, 1])
    notes = Brier(decomposition="murphy")(view).notes
    assert [note.code for note in notes] == ["TN128"]
    assert "2 of 2 occupied bins" in notes[0].text
    notes = Brier(decomposition="ferro-fricker")(view).notes
    assert [note.code for note in notes] == ["TN127"]
    assert "1 of 2 occupied bins" in notes[0].text
    assert [note.code for note in LogLoss(decomposition=CR)(View([0.0, 0.1], [1, 0])).notes] == ["TN104", "TN128"]
    plenty = View(np.repeat([0.1, 0.9], 10), np.repeat([0, 1], 10))
    assert Brier(decomposition="murphy")(plenty).notes == Brier(decomposition="ferro-fricker")(plenty).notes == ()


# Settings


def test_without_a_decomposition_nothing_changes() -> None:
    view = View([0.2, 0.7], [0, 1])
    for score in (Brier(), LogLoss()):
        assert (score(view).parts, score(view).settings, score(view).notes) == ({}, {}, ())
        assert score.value(view) == type(score)(decomposition=CR).value(view)
    assert LogLoss(1e-3).min_prob == 1e-3


def test_the_decomposition_is_read_back() -> None:
    settings = Brier(decomposition="murphy", partition=Uniform(2))(View([0.2, 0.4, 0.8], [0, 1, 1])).settings
    assert settings == {"decomposition": "murphy", "partition": "uniform 2", "occupied_bins": 2, "smallest_bin": 1}
    assert LogLoss(0.01, decomposition=CR)(View([0.2, 0.4], [0, 1])).settings["min_prob"] == 0.01


def test_a_partition_is_no_word_in_the_constructor() -> None:
    with refused("TO203", "'uniform'"):
        Brier(decomposition="murphy", partition="uniform")  # type: ignore[arg-type]


def test_words_become_settings() -> None:
    made = ESTIMATORS.make("brier", {"decomposition": "murphy", "bins": 10})
    assert made == Brier(decomposition="murphy", partition=Uniform(10))
    made = ESTIMATORS.make("log_loss", {"decomposition": CR, "partition": "distinct", "min_prob": 0.1})
    assert made == LogLoss(0.1, decomposition=CR, partition=Distinct())


def test_murphys_terms_of_vectors_are_refused_and_cells_of_vectors_have_none() -> None:
    view = View(np.full((4, 3), 1 / 3), np.eye(3)[[0, 1, 2, 0]])
    for name in ("murphy", "ferro-fricker"):
        with refused("TO205", name, fix=CR):
            Brier(decomposition=name)(view)
    cells = view.pool(np.array([0, 0, 1, 1]), 2)
    with refused("TO205", "2 cells of 4 rows"):
        Brier(decomposition=CR).parts(cells)
    with refused("TO205", "1 cells of 2 rows"):
        LogLoss(decomposition=CR).parts(View([0.2, 0.3], [0, 1]).pool(np.zeros(2, int), 1))


# Through the façade


def rows_of(n: int, k: int) -> to.Predictions:
    rng = np.random.default_rng(n)
    P = rng.dirichlet([1.0] * k, n)
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return to.Predictions(y, P)


def test_the_terms_stand_beside_the_score_its_interval_and_its_floor() -> None:
    preds = rows_of(400, 2)
    estimate = to.measure(preds, "brier", decomposition="murphy", bins=10, resamples=200)
    assert murphy_sum(estimate.parts) == pytest.approx(estimate.value, rel=1e-12)
    plain = to.measure(preds, "brier", resamples=200)
    assert (estimate.value, estimate.interval, estimate.noise_floor) == (plain.value, plain.interval, plain.noise_floor)
    assert plain.parts == {}


def test_the_terms_of_several_views_are_put_together_like_their_scores() -> None:
    preds = rows_of(200, 3)
    settings = {"lens": "classwise", "decomposition": "murphy", "bins": 5, "resamples": 50}
    estimate = to.measure(preds, "brier", **settings)
    parts_by_class = [
        Brier(decomposition="murphy", partition=Uniform(5)).parts(view) for view in as_lens("classwise").views(preds)
    ]
    assert murphy_sum(estimate.parts) == pytest.approx(estimate.value, rel=1e-12)
    assert estimate.parts["reliability"] == pytest.approx(
        np.mean([one["reliability"] for one in parts_by_class]), rel=1e-12
    )
    assert set(estimate.parts) == {*parts_by_class[0], "class:0", "class:1", "class:2"}
    worst = to.measure(preds, "brier", aggregate="max", **settings)
    assert set(worst.parts) == {"class:0", "class:1", "class:2"}  # the worst class has terms of its own


def test_a_tally_gives_the_terms_of_its_rows_or_refuses() -> None:
    preds = rows_of(400, 2)
    rows = to.measure(preds, "brier", decomposition="ferro-fricker", bins=15, resamples=50)
    cells = to.measure(to.tally(preds), "brier", decomposition="ferro-fricker", bins=15)
    assert cells.parts == pytest.approx(rows.parts, rel=1e-9)
    assert cells.settings["decomposition"] == "ferro-fricker"
    other = to.measure(to.tally(preds), "brier", decomposition="murphy", bins=7)
    assert "TN404" in [note.code for note in other.notes]  # sevenths are no edges of its cells
    with refused("TO403"):
        to.measure(to.tally(preds), "log_loss", decomposition=CR)
    with refused("TO406"):
        to.measure(to.tally(preds), "brier", decomposition="murphy", closed="left", bins=10)
