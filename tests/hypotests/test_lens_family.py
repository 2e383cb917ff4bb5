"""The default test examines the lenses of an audit; a test of the confidence alone says so."""

import numpy as np
import pytest

import trueodds as to
from tests.rates import rate_is_at_level


def draw_labels(probabilities, rng):
    labels = (probabilities.cumsum(axis=1) <= rng.random(len(probabilities))[:, None]).sum(axis=1)
    return np.minimum(labels, probabilities.shape[1] - 1)


def calibrated(k, n=300, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions(draw_labels(P, rng), P)


def rotated(seed, n=1000, angle=0.5):
    """Three classes whose true probabilities are the predicted ones, rotated around the center of the simplex."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([2, 2, 2], n)
    axes = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    truth = np.maximum(1 / 3 + (P - 1 / 3) @ axes.T @ turn @ axes, 0)
    return to.Predictions(draw_labels(truth / truth.sum(axis=1, keepdims=True), rng), P)


@pytest.mark.slow
def test_the_default_test_of_several_classes_is_the_lens_family_of_an_audit():
    preds = calibrated(3)
    verdict, audit = to.test(preds), to.audit(preds).to_dict()
    family, *lenses = audit["tests"]
    # In the family of an audit the gain of a recalibration has a twentieth of alpha.
    assert verdict.pvalue / 0.95 == pytest.approx(family["pvalue"], rel=1e-12)
    assert verdict.family_pvalue == verdict.pvalue
    assert {test["lens"]: test["pvalue"] for test in lenses} == {
        lens: part["pvalue"] for lens, part in verdict.parts.items()
    }
    assert list(verdict.parts) == ["confidence", "classwise", "canonical"]


def test_the_printed_line_names_each_lens_with_its_p_value():
    verdict = to.test(calibrated(3), resamples=99)
    texts = ", ".join(f"{lens} (p = {part['pvalue']:.4g})" for lens, part in verdict.parts.items())
    assert f"lenses {texts}" in verdict.describe()


@pytest.mark.slow
def test_the_default_test_detects_a_rotation_that_leaves_the_confidence_nearly_calibrated():
    verdicts = [to.test(rotated(seed)) for seed in range(5)]
    assert max(verdict.pvalue for verdict in verdicts) <= 0.002
    assert np.median([verdict.parts["confidence"]["pvalue"] for verdict in verdicts]) > 0.02


def test_one_lens_stays_the_default_where_there_is_only_one():
    preds = calibrated(3)
    confidence = to.Predictions.from_confidence(preds.P.max(axis=1), preds.P.argmax(axis=1) == preds.y)
    assert to.test([0, 1] * 50, [0.4, 0.6] * 50, resamples=99).lens == "positive"
    verdict = to.test(confidence, resamples=99)
    assert (verdict.lens, "confidence_only" in verdict.settings) == ("confidence", False)


@pytest.mark.slow
def test_a_test_of_the_confidence_alone_says_so_unless_it_was_requested():
    preds = calibrated(3)
    for result in (
        to.test(preds, "cox"),
        to.test(preds, "consistency", resamples=99),
        to.test(preds, margin=0.1, resamples=99),
        to.power(preds, "spiegelhalter", effect=0.05),
        to.by_group(
            to.Predictions(preds.y, preds.P, group={"half": np.arange(preds.n) % 2}), resamples=99, interval=None
        ),
    ):
        assert result.lens == "confidence"
        assert "confidence only" in result.describe()
    assert "confidence only" not in to.test(preds, "cox", lens="confidence").describe()
    assert "lens canonical" in to.test(preds, "mcllo").describe()


def test_more_than_a_hundred_classes_are_tested_without_the_whole_vector_which_a_note_says():
    verdict = to.test(calibrated(101, n=200), resamples=39)
    assert list(verdict.parts) == ["confidence", "classwise"]
    assert "TN205" in {note.code for note in verdict.notes}


def test_the_family_of_a_tally_has_holms_p_value_of_its_lenses():
    preds = rotated(0)
    verdict = to.test(to.tally(preds))
    pvalues = [part["pvalue"] for part in verdict.parts.values()]
    assert list(verdict.parts) == ["confidence", "classwise"]
    assert verdict.pvalue == pytest.approx(min(1.0, 2 * min(pvalues)))
    assert list(to.test(to.tally(preds, grid=10), resamples=99).parts) == ["confidence", "classwise", "canonical"]


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 10])
def test_the_default_test_keeps_its_level(k):
    verdicts = (to.test(calibrated(k, 200, seed), rng=seed, resamples=199) for seed in range(200))
    assert rate_is_at_level((verdict.pvalue <= 0.05 for verdict in verdicts), 0.05, excluded=0.15)


@pytest.mark.parametrize("kind", ["weights", "votes"])
def test_the_whole_vector_of_a_tally_of_weights_or_votes_is_left_out_with_a_note(kind):
    # Weights with mean 1 sum to the number of rows, and are weights nonetheless.
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), 400)
    labels = (P.cumsum(axis=1) <= rng.random((400, 1))).sum(axis=1)
    votes = np.array([rng.multinomial(50, p) for p in P])
    rows = to.Predictions(votes, P) if kind == "votes" else to.Predictions(labels, P, weight=np.tile([0.5, 1.5], 200))
    verdict = to.test(to.tally(rows, grid=10), resamples=99)
    assert list(verdict.parts) == ["confidence", "classwise"]
    assert "TN210" in [note.code for note in verdict.notes]
