"""Rows that stand twice are seen, coarse scores are not taken for copies."""

import numpy as np

import trueodds as to
from trueodds.reports.data_description import duplicate_notes


def rows(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    return (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), P


def test_copied_rows_are_counted():
    y, P = rows()
    preds = to.Predictions(np.r_[y, y[:20], y[:5]], np.r_[P, P[:20], P[:5]])
    (note,) = duplicate_notes(preds)
    assert note.code == "TN144"
    assert note.text.startswith("25 rows")
    assert "TN144" in {note.code for note in to.audit(preds).notes}


def test_the_same_prediction_with_another_outcome_is_no_copy():
    y, P = rows()
    assert duplicate_notes(to.Predictions(np.r_[y, (y[:20] + 1) % 3], np.r_[P, P[:20]])) == []


def test_clusters_say_it_already():
    y, P = rows()
    cluster = np.r_[np.arange(1000), np.arange(20)]
    assert duplicate_notes(to.Predictions(np.r_[y, y[:20]], np.r_[P, P[:20]], cluster=cluster)) == []


def test_coarse_scores_and_fresh_rows_are_left_alone():
    y, P = rows()
    assert duplicate_notes(to.Predictions(y, P)) == []
    coarse = np.eye(3)[np.random.default_rng(1).integers(0, 3, 1000)] * 0.7 + 0.1
    assert duplicate_notes(to.Predictions(y, coarse)) == []


def test_every_copy_is_counted_wherever_it_stands():
    # A matrix product adds up rows near the end of a block in another order: equal rows then have sums that differ by
    # rounding, on some processors and for some sizes.
    for classes, copied in ((3, 51), (10, 56), (10, 57), (100, 53)):
        rng = np.random.default_rng(0)
        P, y = rng.dirichlet(np.ones(classes), 950), rng.integers(0, classes, 950)
        preds = to.Predictions(np.r_[y, y[:copied]], np.r_[P, P[:copied]])
        (note,) = duplicate_notes(preds)
        assert note.text.startswith(f"{copied} rows")


def test_copies_with_several_labels_have_the_same_labels():
    rng = np.random.default_rng(0)
    P = rng.random((1000, 3))
    Y = (rng.random((1000, 3)) < P).astype(int)
    alike = to.Predictions.from_multilabel(np.r_[Y, Y[:20]], np.r_[P, P[:20]])
    (note,) = duplicate_notes(alike)
    assert note.text.startswith("20 rows")
    assert duplicate_notes(to.Predictions.from_multilabel(np.r_[Y, 1 - Y[:20]], np.r_[P, P[:20]])) == []
