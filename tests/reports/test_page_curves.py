"""Are belt and decision curve of the page, which are made from cells, those of the rows, and left out with a reason?"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import trueodds as to
from trueodds.reports.html.svg_pictures import round_ticks
from trueodds.reports.page_curves import PageCells


@pytest.fixture(scope="module")
def preds() -> to.Predictions:
    rng = np.random.default_rng(4)
    p = rng.beta(1.5, 4, 3000)
    return to.Predictions((rng.random(3000) < p**1.3).astype(int), p)


def test_the_curves_of_cells_are_those_of_the_rows(preds: to.Predictions) -> None:
    belt, decision = PageCells.of(preds, 0.95).diagrams()
    own_belt = to.draw(preds, "calibration_belt", level=0.95)
    for column in ("rate", "low", "high"):
        np.testing.assert_allclose(belt.table[column], own_belt.table[column], atol=2e-4)
    own = to.draw(preds, "decision_curve", band=None)
    curves = [diagram.table["net_benefit"][diagram.table["part"] == "curve"] for diagram in (decision, own)]
    # Cells end at the thresholds, so that every row is on its side of each of them.
    np.testing.assert_allclose(*curves, atol=1e-12)
    assert decision.settings["banded"]


@pytest.mark.slow
def test_the_page_of_two_classes_has_both_and_the_json_neither(preds: to.Predictions) -> None:
    audit = to.audit(preds[:400], resamples=99)
    page = audit.to_html()
    for text in ("Calibration belt and decision curve", "treat all", "simultaneous band", "pointwise band"):
        assert text in page
    assert "<img " not in page  # all pictures have the style of the page
    assert {diagram["diagram"] for diagram in audit.to_dict()["diagrams"]} == {"reliability", "confidence_histogram"}
    assert pickle.loads(pickle.dumps(audit)).to_html() == page


def test_what_is_left_out_has_a_reason(preds: to.Predictions) -> None:
    clustered = PageCells.of(to.Predictions(preds.y, preds.p, cluster=np.arange(3000) // 5), 0.95)
    (decision,) = clustered.diagrams()
    assert not decision.settings["banded"]
    assert "Rows are clustered" in clustered.explanation
    certain = PageCells.of(to.Predictions(preds.y, np.where(preds.p < 0.1, 0.0, preds.p)), 0.95)
    assert [diagram.name for diagram in certain.diagrams()] == ["decision_curve"]
    assert "no log odds" in certain.explanation
    assert not any("Belt" in cells.explanation for cells in (clustered, certain))
    several = to.Predictions([0, 1, 2], np.full((3, 3), 1 / 3))
    assert PageCells.of(several, 0.95) is None


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.03, 0.21), (0.0, 0.0123), (-0.4, 1.3)])
def test_ticks_are_round_and_within_their_axis(low: float, high: float) -> None:
    ticks = round_ticks(low, high)
    assert 3 <= len(ticks) <= 7
    assert low <= ticks[0] < ticks[-1] <= high
    assert np.ptp(np.diff(ticks)) < 1e-12
