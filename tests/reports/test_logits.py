"""Does an audit of scores say that they were read as log odds?"""

from __future__ import annotations

import numpy as np
import pytest

from tests.reports.example import typed
from trueodds import Predictions, audit, fit
from trueodds.reports.html.methods_paragraph import describe_methods

rng = np.random.default_rng(0)
Z = rng.normal(size=60)
Y = (rng.random(60) < 1 / (1 + np.exp(-Z))).astype(int)


@pytest.mark.parametrize(
    ("preds", "logits", "line", "sentence", "codes"),
    [
        (
            Predictions.from_logits(Y, Z),
            "log odds",
            "scores read as log odds",
            "Scores were read as log odds and converted to probabilities by the logistic function.",
            ["TN157"],
        ),
        (
            Predictions.from_logits(Y, np.stack([-Z, Z], axis=1)),
            "logits",
            "probabilities computed from logits",
            "Logits were converted to probabilities by the softmax function.",
            [],
        ),
        (Predictions(Y, 1 / (1 + np.exp(-Z))), None, None, None, []),
    ],
)
def test_scores_that_became_probabilities_are_named(preds, logits, line, sentence, codes):
    result = audit(preds, resamples=99)
    report = result.to_dict()
    assert report["data"]["logits"] == logits
    assert [note["code"] for note in report["notes"] if note["code"] == "TN157"] == codes
    text, methods = " ".join(str(result).split()), describe_methods(typed(report)).text
    for phrase, where in ((line, text), (sentence, methods)):
        assert phrase is None or phrase in where
    assert ("log odds" in text.split("Mean predicted")[0]) == (logits == "log odds")


@pytest.mark.slow
def test_the_verdict_begins_with_scores_that_are_no_log_odds() -> None:
    rng = np.random.default_rng(0)
    score = rng.uniform(300, 850, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-(score - 600) / 40))).astype(int)
    sentence = audit(Predictions.from_logits(y, score), resamples=99).to_dict()["verdict"]["sentence"]
    assert sentence.startswith("The scores do not look like log odds, so only their ranks have a meaning. ")


def probabilities_as_logits(k, overconfidence=1.0, n=800):
    """Probabilities of k classes that were passed as logits: calibrated, or with log odds that are too large."""
    rng = np.random.default_rng(k)
    P = rng.dirichlet(np.full(k, 0.5), n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    Q = np.exp(overconfidence * np.log(P))
    Q /= Q.sum(axis=1, keepdims=True)
    return Predictions.from_logits(y, Q[:, 1] if k == 2 else Q)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("overconfidence", [1.0, 3.0])
def test_the_verdict_on_probabilities_that_were_read_as_logits_begins_with_this_and_advises_no_recalibration(
    k, overconfidence
):
    report = audit(probabilities_as_logits(k, overconfidence), resamples=99).to_dict()
    sentence = report["verdict"]["sentence"]
    assert sentence.startswith("The logits seem to be probabilities, which must not be read as logits. ")
    assert "reduces" not in sentence
    assert "different order" not in sentence
    assert report["recalibration"]["candidates"] == []
    assert next(note["code"] for note in report["recalibration"]["notes"]) == "TN108"
    codes = [note["code"] for note in report["notes"]]
    assert "TN108" in codes
    assert not {"TN142", "TN163", "TN186"} & set(codes)


def test_auto_keeps_probabilities_that_were_read_as_logits():
    calibrator = fit(probabilities_as_logits(5), "auto")
    assert calibrator.method == "identity"
    assert "TN108" in [note.code for note in calibrator.notes]


def test_logits_of_independent_labels_that_look_like_probabilities_start_the_verdict():
    rng = np.random.default_rng(0)
    P = rng.random((300, 3))
    preds = Predictions.from_multilabel((rng.random((300, 3)) < P).astype(int), P, logits=True)
    assert "TN108" in [note.code for note in preds.notes]
    assert audit(preds, resamples=99).verdict["sentence"].startswith("The logits seem to be probabilities")
