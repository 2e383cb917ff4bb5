"""Does an audit of scores say that they were read as log odds?"""

from __future__ import annotations

import numpy as np
import pytest

from trueodds import Predictions, audit
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
    text, methods = " ".join(str(result).split()), describe_methods(report).text
    for phrase, where in ((line, text), (sentence, methods)):
        assert phrase is None or phrase in where
    assert ("log odds" in text.split("Mean predicted")[0]) == (logits == "log odds")


def test_the_verdict_begins_with_scores_that_are_no_log_odds() -> None:
    rng = np.random.default_rng(0)
    score = rng.uniform(300, 850, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-(score - 600) / 40))).astype(int)
    sentence = audit(Predictions.from_logits(y, score), resamples=99).to_dict()["verdict"]["sentence"]
    assert sentence.startswith("The scores do not look like log odds, so only their ranks have a meaning. ")
