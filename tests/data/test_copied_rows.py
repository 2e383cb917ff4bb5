"""Copies of rows are noted wherever rows are examined, and equal predictions of different cases are not."""

import numpy as np
import pytest

import trueodds as to
from trueodds.data.copied_rows import copied_row_notes, number_cases


def vectors(n=1000, seed=0, k=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return (P.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), P


def scores(n=1000, seed=0, decimals=None, trees=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    if trees is not None:
        p = rng.binomial(trees, p) / trees
    return y, p if decimals is None else p.round(decimals)


def codes(result):
    return [note.code for note in result.notes]


ROWS_OF_COPIES = {
    "doubled": lambda n: np.tile(np.arange(n), 2),
    "five copies": lambda n: np.repeat(np.arange(n), 5),
    "a bootstrap resample": lambda n: np.random.default_rng(1).integers(n, size=n),
    "half of the rows copied": lambda n: np.r_[np.arange(n), np.arange(n // 2)],
}


@pytest.mark.parametrize("rows", ROWS_OF_COPIES.values(), ids=ROWS_OF_COPIES)
def test_copies_of_continuous_scores_are_noted_whatever_their_share(rows):
    for y, p in (scores(), vectors(), scores(decimals=5)):
        preds = to.Predictions(y, p)
        assert copied_row_notes(preds) == []
        (note,) = copied_row_notes(preds[rows(1000)])
        assert note.code == "TN144"


def test_the_rows_that_equal_another_row_are_counted():
    y, P = vectors()
    (note,) = copied_row_notes(to.Predictions(np.r_[y, y[:40], y[:5]], np.r_[P, P[:40], P[:5]]))
    assert note.text.startswith("45 rows have the same prediction and outcome as another row")


@pytest.mark.slow
def test_every_public_function_and_the_verdict_say_so():
    y, p = (np.tile(values, 2) for values in scores(500))
    preds, other = to.Predictions(y, p), to.Predictions(y, p**1.2)
    report = to.audit(preds, resamples=99)
    results = (
        to.measure(preds, resamples=20),
        to.test(preds, resamples=99),
        to.fit(preds, "temperature"),
        to.compare(preds, other, resamples=20),
        report,
    )
    assert all("TN144" in codes(result) for result in results)
    assert report.verdict["sentence"].startswith(
        "Rows seem to be copies of other rows; this verdict is as if every row"
    )


def test_coarse_scores_are_noted_only_if_all_rows_were_copied():
    for y, p in (scores(trees=20), scores(decimals=2), scores(3000, trees=100)):
        preds = to.Predictions(y, p)
        assert copied_row_notes(preds) == []
        (note,) = copied_row_notes(to.Predictions(np.tile(y, 3), np.tile(p, 3)))
        assert "in a multiple of 3 rows" in note.text
        n_copied = len(y) // 10  # which nothing tells apart from equal predictions of different cases
        assert copied_row_notes(to.Predictions(np.r_[y, y[:n_copied]], np.r_[p, p[:n_copied]])) == []


def test_rows_that_share_only_some_probabilities_are_no_copies():
    y, P = vectors(k=20)
    P = np.c_[np.zeros(1000), P, np.zeros(1000)]
    assert copied_row_notes(to.Predictions(y + 1, P)) == []
    (note,) = copied_row_notes(to.Predictions(np.r_[y, y[:40]] + 1, np.r_[P, P[:40]]))
    assert note.text.startswith("40 rows have the same prediction and outcome as another row")


def test_the_same_prediction_with_another_outcome_is_no_copy():
    y, P = vectors()
    assert copied_row_notes(to.Predictions(np.r_[y, (y[:100] + 1) % 3], np.r_[P, P[:100]])) == []


def test_clusters_declare_that_rows_depend_on_each_other():
    y, P = vectors()
    cluster = np.r_[np.arange(1000), np.arange(100)]
    assert copied_row_notes(to.Predictions(np.r_[y, y[:100]], np.r_[P, P[:100]], cluster=cluster)) == []


def test_rows_without_weight_are_no_copies():
    y, p = (np.tile(values, 2) for values in scores())
    assert copied_row_notes(to.Predictions(y, p, weight=np.repeat([1.0, 0.0], 1000))) == []
    assert codes(to.measure(to.Predictions(y, p, weight=np.full(2000, 2.0)), interval=None))[-1:] == ["TN144"]


def test_copies_of_votes_and_of_several_labels_have_the_same_ones():
    rng = np.random.default_rng(0)
    P = rng.random((1000, 3))
    Y = (rng.random((1000, 3)) < P).astype(int)
    assert codes_of(to.Predictions.from_multilabel(np.r_[Y, Y[:60]], np.r_[P, P[:60]])) == ["TN144"]
    assert codes_of(to.Predictions.from_multilabel(np.r_[Y, 1 - Y[:60]], np.r_[P, P[:60]])) == []
    Q = rng.dirichlet(np.ones(3), 1000)
    votes = rng.multinomial(5, Q)
    assert codes_of(to.Predictions(np.r_[votes, votes[:60]], np.r_[Q, Q[:60]])) == ["TN144"]
    assert codes_of(to.Predictions(votes, (Q * 3).round() / (Q * 3).round().sum(axis=1, keepdims=True))) == []


def codes_of(preds):
    return [note.code for note in copied_row_notes(preds)]


def test_copies_among_many_rows_are_found_in_a_sample():
    y, p = scores(200_000)
    assert copied_row_notes(to.Predictions(y, p)) == []
    (note,) = copied_row_notes(to.Predictions(np.tile(y, 2), np.tile(p, 2)))
    assert "of a sample of" in note.text


def test_different_cases_with_equal_predictions_are_rarely_taken_for_copies():
    # Logistic models of categorical features that omit an interaction: under the null hypothesis of the check a set is
    # noted with probability 10⁻⁴; 4 of 400 sets have a probability below 10⁻⁶.
    noted = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        X = rng.random((500, 8)) < rng.random(8)
        logit = X @ rng.normal(0, 1, 8) - 1
        y = rng.random(500) < 1 / (1 + np.exp(-logit - (X[:, 0] ^ X[:, 1])))
        noted += len(copied_row_notes(to.Predictions(y.astype(int), 1 / (1 + np.exp(-logit)))))
    assert noted < 4


@pytest.mark.parametrize("n_features", range(2, 8))
def test_outcomes_that_categorical_features_determine_are_no_copies(n_features):
    # Rows of a category have the same prediction and the same outcome, but categories have unequal numbers of rows.
    # Predictions are random numbers, so that the outcomes of similar predictions differ.
    for seed in range(10):
        rng = np.random.default_rng([seed, n_features])
        X = (rng.random((1000, n_features)) < rng.uniform(0.2, 0.8, n_features)) @ 2 ** np.arange(n_features)
        p, r = rng.random((2, 2**n_features))
        preds = to.Predictions((r[X] < 0.5).astype(int), p[X], classes=[0, 1])
        assert codes_of(preds) == []


def test_a_class_that_was_oversampled_is_noted():
    y, p = scores()
    p, y = p**4, (np.random.default_rng(2).random(1000) < p**4).astype(int)
    events = np.flatnonzero(y == 1)
    rows = np.r_[np.arange(1000), np.random.default_rng(1).choice(events, 1000 - 2 * len(events))]
    assert y[rows].mean() == 0.5
    assert codes_of(to.Predictions(y[rows], p[rows])) == ["TN144"]


@pytest.mark.slow
def test_the_copies_of_a_case_are_in_one_fold():
    # With a random fold per row, maps are evaluated on copies of the rows that they were fitted to: of 20 calibrated
    # sets with five copies, about all would be confirmed. Under the null hypothesis 4 have a probability of 1.6 %.
    n_confirmed = 0
    for seed in range(20):
        y, p = (np.tile(values, 5) for values in scores(300, seed))
        n_confirmed += to.fit(to.Predictions(y, p)).method != "identity"
    assert n_confirmed < 4


def test_a_miscalibrated_set_with_copies_is_still_recalibrated():
    y, p = (np.tile(values, 2) for values in scores())
    assert to.fit(to.Predictions(y, p**3 / (p**3 + (1 - p) ** 3))).method != "identity"


def test_cases_are_numbered_by_their_copies():
    y, p = scores(trees=20)
    cases = number_cases(to.Predictions(np.tile(y, 2), np.tile(p, 2)))
    assert len(np.unique(cases)) == 1000
    assert (np.bincount(cases) == 2).all()
    y, p = scores()
    cases = number_cases(to.Predictions(np.r_[y, y[:7]], np.r_[p, p[:7]]))
    assert np.array_equal(cases[:7], cases[1000:])
    assert len(np.unique(cases)) == 1000
