"""Does the report of tallied rows say that the recalibration was fitted to a sample of them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import typed
from trueodds.reports.html.methods_paragraph import describe_methods
from trueodds.tallies import reservoir


def overconfident(n: int) -> to.Predictions:
    """Rows of three classes whose logits are twice as large as those from which the labels are drawn."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(n, 3))
    P, Q = (np.exp(s * z) / np.exp(s * z).sum(axis=1, keepdims=True) for s in (1, 2))
    return to.Predictions((P.cumsum(axis=1)[:, :-1] <= rng.random((n, 1))).sum(axis=1), Q)


def texts(audit: Any) -> tuple[str, str, str]:
    """Return the note on the confirmed map, the whole text, and the paragraph on the methods."""
    report = audit.to_dict()
    (note,) = (note["text"] for note in report["recalibration"]["notes"] if note["code"] == "TN509")
    return note, " ".join(str(audit).split()), describe_methods(typed(report)).text


@pytest.mark.slow
def test_a_map_that_is_fitted_to_a_sample_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservoir, "MAX_PROBS", 3 * 2000)
    note, text, methods = texts(to.audit(overconfident(6000), mode="tally", resamples=99))
    assert ", was fitted to 2,000 rows and mixed" in note
    assert "sample of 2,000 of 6,000 rows" in text
    assert "log loss in the sample" in text
    assert "by cross-fitting on 2,000 sampled rows" in text
    assert "fitted on a random sample of 2,000 rows" in methods
    assert "all rows" not in note + methods


@pytest.mark.slow
def test_a_map_that_is_fitted_to_all_rows_is_said_to_be() -> None:
    note, text, methods = texts(to.audit(overconfident(2000), resamples=99))
    assert ", was fitted to 2,000 rows and mixed" in note
    assert "sample" not in text.partition("Notes")[0].partition("Recalibration")[2].partition(";")[0]
    assert "fitted on all rows" in methods
