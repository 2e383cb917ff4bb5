"""Null draws per bin with many rows have the distribution of draws per row, at the cost of bins."""

import numpy as np
import pytest

import trueodds as to
from tests.resampling.questions import make_estimand, simulated
from trueodds import kernels
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import GroupLens
from trueodds.resampling import null_distribution
from trueodds.resampling.bootstrap import bootstrap_cells
from trueodds.resampling.cell_draws import CellRedraw, null_covariance
from trueodds.resampling.draws import evaluate
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import can_draw_by_bin, noise_floor_draws, null_draws

DRAWS = 4000


@pytest.fixture
def many(monkeypatch):
    """As if the rows were more than 200,000."""
    monkeypatch.setattr(null_distribution, "MAX_RESAMPLED_ROWS", 100)


def assert_same_distribution(a, b):
    # the share of one sample below a quantile of another has variance q(1 − q)(1/n + 1/n)
    for q in (0.025, 0.25, 0.5, 0.75, 0.975):
        assert abs((b < np.quantile(a, q)).mean() - q) < 4.5 * np.sqrt(q * (1 - q) * 2 / len(a))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 0.1])  # with 0.1 most rows are nearly sure: bins of small variance
@pytest.mark.parametrize(
    ("name", "lens"),
    [("ece", "confidence"), ("ks", "confidence"), ("ece", "class:0"), ("ece", "classwise"), ("ece", "top-label")],
)
def test_bins_give_the_law_of_rows(alpha, name, lens, monkeypatch):
    preds = simulated(alpha=alpha)
    question = make_estimand(preds, name, lens)
    (rows,) = null_draws(preds, [question], DRAWS, np.random.default_rng(1), share_draws=False)
    monkeypatch.setattr(null_distribution, "MAX_RESAMPLED_ROWS", 100)
    assert can_draw_by_bin(preds, [question], share_draws=False)
    (bins,) = null_draws(preds, [question], DRAWS, np.random.default_rng(2), share_draws=False)
    assert_same_distribution(question.combine_views(rows), question.combine_views(bins))


def test_independent_labels_are_drawn_apart(monkeypatch):
    rng = np.random.default_rng(0)
    P = rng.random((3000, 3))
    preds = Predictions.from_multilabel((rng.random((3000, 3)) < P).astype(int), P)
    question = make_estimand(preds, "ece", "classwise")
    (rows,) = null_draws(preds, [question], DRAWS, np.random.default_rng(1), share_draws=False)
    monkeypatch.setattr(null_distribution, "MAX_RESAMPLED_ROWS", 100)
    assert can_draw_by_bin(preds, [question], share_draws=False)
    (bins,) = null_draws(preds, [question], DRAWS, np.random.default_rng(2), share_draws=False)
    assert_same_distribution(question.combine_views(rows), question.combine_views(bins))


def test_a_tally_and_its_rows_have_one_law():
    preds = simulated(alpha=0.3)
    question = make_estimand(preds)
    (rows,) = null_draws(preds, [question], DRAWS, np.random.default_rng(1))
    verdicts = [to.test(data, "consistency", resamples=DRAWS) for data in (preds, to.tally(preds))]
    # two shares of one law, from 4,000 draws each
    p = verdicts[0].pvalue
    assert abs(p - verdicts[1].pvalue) < 4.5 * np.sqrt(2 * p * (1 - p) / DRAWS)
    assert (rows[0] >= question.values[0]).mean() == pytest.approx(p, abs=4.5 * np.sqrt(2 * p * (1 - p) / DRAWS))


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2, 300)])
def test_the_null_covariance_equals_plain_loops(weight):
    preds = simulated(300, weight=weight)
    question = make_estimand(preds, "ece", "classwise", partition="equal-mass", bins=4)
    sizes = [one.size for one in question.cell_statistics]
    first = np.concatenate(([0], np.cumsum(sizes)))
    expected = np.zeros((first[-1], first[-1]))
    for i in range(300):
        p, w = preds.P[i], preds.w[i]
        for k in range(3):
            for m in range(3):
                a, b = (first[c] + question.cell_statistics[c].index[i] for c in (k, m))
                expected[a, b] += w**2 * ((k == m) * p[k] - p[k] * p[m])
    np.testing.assert_allclose(null_covariance(question), expected, rtol=1e-12, atol=1e-13)


def test_which_questions_are_drawn_by_bins(many):
    rng = np.random.default_rng(0)
    preds = simulated()
    binary, classes = make_estimand(preds), make_estimand(preds, "ece", "classwise")
    assert can_draw_by_bin(preds, [binary])
    assert not can_draw_by_bin(preds, [classes])  # judged together: one label per row
    assert can_draw_by_bin(preds, [classes], share_draws=False)
    assert not can_draw_by_bin(preds, [binary, classes])
    assert not can_draw_by_bin(preds, [make_estimand(preds, "ece", "canonical")], share_draws=False)
    assert not can_draw_by_bin(preds, [make_estimand(preds, "ece", partition="sweep")])  # chosen with the labels
    assert not can_draw_by_bin(
        preds, [make_estimand(preds, "ece", "classwise", bins=700)], share_draws=False
    )  # 2100 bins together
    assert not can_draw_by_bin(simulated(cluster=np.arange(3000) // 2), [binary])
    crowd = Predictions(np.array([rng.multinomial(3, p) for p in preds.P]), preds.P)
    assert not can_draw_by_bin(crowd, [make_estimand(crowd)])
    small = simulated(100)
    assert not can_draw_by_bin(small, [make_estimand(small)])
    inside = Estimand.from_predictions(
        ESTIMATORS.make("ece", {}),
        GroupLens(as_lens("classwise"), "site", "A"),
        simulated(group={"site": np.repeat(["A", "B"], 1500)}),
    )
    assert can_draw_by_bin(simulated(), [inside], share_draws=False)


def test_weights_are_drawn_by_bins_where_no_row_stands_out(many):
    even, heavy = np.full(3000, 0.5), np.full(3000, 0.5)
    heavy[7] = 50.0
    for weight, expected in ((even, True), (heavy, False)):
        preds = simulated(weight=weight)
        assert can_draw_by_bin(preds, [make_estimand(preds, bins=5)]) is expected


@pytest.mark.parametrize("lens", ["confidence", "classwise"])
def test_even_weights_change_nothing(lens, many):
    plain, weighted = simulated(), simulated(weight=np.full(3000, 0.5))
    combined = []
    for preds in (plain, weighted):
        question = make_estimand(preds, "ece", lens, bins=3)
        assert can_draw_by_bin(preds, [question], share_draws=False)
        (drawn,) = null_draws(preds, [question], DRAWS, np.random.default_rng(1), share_draws=False)
        combined.append(question.combine_views(drawn))
    np.testing.assert_allclose(*combined, rtol=1e-10)


def test_the_noise_floor_and_the_verdict_use_bins(many, monkeypatch):
    preds = simulated()
    monkeypatch.setattr(
        kernels.random_labels, "sum_label_weights", lambda *_args, **_more: pytest.fail("a label per row was drawn")
    )
    assert noise_floor_draws(
        preds, [make_estimand(preds), make_estimand(preds, "ece", "classwise")], np.random.default_rng(0)
    )[1].shape == (
        3,
        999,
    )
    assert to.measure(preds, "ece").noise_floor > 0
    verdict = to.test(preds, "consistency")
    assert verdict.settings["drawn"] == "bins"
    assert "predicted probabilities" in verdict.null


def test_few_rows_are_drawn_one_by_one():
    assert "drawn" not in to.test(simulated(), "consistency").settings


@pytest.mark.slow
def test_the_level_is_kept_by_bins(many):
    # 200 calibrated data sets at 5 %: Binomial(200, .05) exceeds 21 with probability .1 %.
    rejected = 0
    for seed in range(200):
        preds = simulated(1000, seed=seed, alpha=0.3)
        rejected += to.test(preds, "consistency", resamples=199, rng=seed).pvalue <= 0.05
    assert rejected <= 21


def other_vectors(values, vectors, rng):
    """Another set of eigenvectors: other signs, and another basis where eigenvalues are equal."""
    vectors = vectors * rng.choice([-1.0, 1.0], len(values))
    near = np.abs(values[:, None] - values) < 1e-9
    for group in {tuple(np.flatnonzero(row)) for row in near}:
        turn = np.linalg.qr(rng.normal(size=(len(group), len(group))))[0]
        vectors[:, group] = vectors[:, group] @ turn
    return vectors


def test_correlated_draws_do_not_depend_on_which_eigenvectors_the_processor_finds(monkeypatch):
    # Processors and versions of LAPACK agree on neither the signs of eigenvectors nor the basis of equal eigenvalues.
    preds = simulated(3000, alpha=0.3)
    (question,) = [make_estimand(preds, "ece", "classwise")]
    (plain,) = evaluate([question], CellRedraw(200, np.random.default_rng(1), null_covariance(question)))
    eigh, rng = np.linalg.eigh, np.random.default_rng(2)

    def another(matrix):
        values, vectors = eigh(matrix)
        return values, other_vectors(values, vectors, rng)

    monkeypatch.setattr(np.linalg, "eigh", another)
    (turned,) = evaluate([question], CellRedraw(200, np.random.default_rng(1), null_covariance(question)))
    assert turned == pytest.approx(plain, rel=1e-9)


def test_joint_resamples_do_not_depend_on_which_singular_vectors_the_processor_finds(monkeypatch):
    preds = simulated(3000, alpha=0.3)
    question = make_estimand(preds, "ece", "canonical")
    plain = bootstrap_cells(question, 200, np.random.default_rng(1)).values
    svd, rng = np.linalg.svd, np.random.default_rng(2)

    def another(rows, full_matrices):
        left, sizes, right = svd(rows, full_matrices=full_matrices)
        sign = rng.choice([-1.0, 1.0], len(sizes))
        return left * sign, sizes, right * sign[:, None]

    monkeypatch.setattr(np.linalg, "svd", another)
    assert bootstrap_cells(question, 200, np.random.default_rng(1)).values == pytest.approx(plain, rel=1e-9)
