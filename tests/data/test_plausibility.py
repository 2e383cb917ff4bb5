"""Are labels in another order than the columns, and predicted labels in place of probabilities, seen and told?"""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

import trueodds as to
from trueodds.data.plausibility import (
    IMPLAUSIBLE_DATA_CODES,
    _best_order,
    _count_pairs,
    check_class_order,
    check_hard_labels,
    plausibility_notes,
)
from trueodds.reports.text.recalibration import IMPLAUSIBLE_DATA_TEXTS


def rows(n=200, k=3, signal=6.0, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k)) + signal * np.eye(k)[y]
    return y, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def test_swapped_classes_are_noticed():
    y, P = rows()
    (note,) = check_class_order(to.Predictions(np.array([1, 0, 2])[y], P))
    assert note.code == "TN142"
    right = (P.argmax(axis=1) == y).mean()
    assert f"{100 * right:.0f}" in note.text
    assert "TN142" in {note.code for note in to.audit(to.Predictions(np.array([1, 0, 2])[y], P)).notes}


def test_a_good_model_and_a_hopeless_one_are_left_alone():
    y, P = rows()
    assert check_class_order(to.Predictions(y, P)) == []
    rng = np.random.default_rng(1)
    assert check_class_order(to.Predictions(rng.permutation(y), P)) == []


def test_a_model_that_guesses_is_hardly_ever_doubted():
    # The rate is 3e-4 or less (30 rows, two classes): of 300 data sets more than one would come in 0.5 % of runs.
    rng = np.random.default_rng(2)
    doubted = sum(
        bool(check_class_order(to.Predictions(rng.integers(0, 2, 30), np.eye(2)[rng.integers(0, 2, 30)])))
        for _ in range(300)
    )
    assert doubted <= 1


def test_noise_of_more_classes_than_rows_is_not_another_order():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(300), 40)  # nearly every row has a label and a predicted class of its own
    assert check_class_order(to.Predictions(rng.integers(0, 300, 40), P)) == []
    y, accurate = rows(n=400, k=200, signal=12.0)  # two rows of each class, in another order
    assert [note.code for note in check_class_order(to.Predictions((y + 1) % 200, accurate))] == ["TN142"]


def test_two_classes_the_wrong_way_round():
    y, P = rows(k=2)
    assert [note.code for note in check_class_order(to.Predictions(1 - y, P))] == ["TN142"]


def test_few_rows_tell_nothing():
    y, P = rows(n=20)
    assert check_class_order(to.Predictions((y + 1) % 3, P)) == []


def codes(result):
    return [note.code for note in result.notes]


def test_a_sample_of_many_rows_tells_that_nothing_is_wrong_and_all_of_them_that_it_is():
    y, P = rows(n=400_000, k=2)  # more than a sample
    assert check_class_order(to.Predictions(y, P)) == []
    (note,) = check_class_order(to.Predictions(1 - y, P))
    assert f"{100 * (P.argmax(axis=1) == y).mean():.1f} %" in note.text


def test_another_order_of_many_classes_is_found_without_a_table_of_all_pairs():
    """Regression: the counts of 20,000 × 20,000 pairs took 3.2 GB."""
    k, predicted = 20_000, np.repeat(np.arange(0, 20_000, 1000), 3)
    P = np.full((len(predicted), k), 0.5 / (k - 1), dtype=np.float32)
    P[np.arange(len(P)), predicted] = 0.5
    preds = to.Predictions((predicted + 1) % k, P)
    tracemalloc.start()
    (note,) = check_class_order(preds)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "would be 100.0 % instead of 0.0 %" in note.text
    assert peak < 100e6


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_best_order_is_that_of_an_assignment_in_the_whole_table(is_weighted):
    rng = np.random.default_rng(5)
    for _ in range(50):
        k, n = rng.integers(2, 9), rng.integers(1, 120)
        label, predicted = rng.integers(0, k, (2, n))
        w = rng.exponential(1e-200, n) if is_weighted else None
        table = np.bincount(label * k + predicted, w, k * k).reshape(k, k)
        expected = table[linear_sum_assignment(table / table.max(), maximize=True)].sum()
        labels, classes, weight = _count_pairs(label, predicted, w, k)
        order = _best_order(labels, classes, weight, k)
        assert weight[labels == order[classes]].sum() == pytest.approx(expected, rel=1e-12, abs=0)
        assert len(set(order[order >= 0])) == (order >= 0).sum()


def test_weights_count_in_the_order_of_classes():
    y, P = rows(k=2)
    right = to.Predictions(np.concatenate([y, 1 - y]), np.concatenate([P, P]), weight=np.repeat([1, 0.1], len(y)))
    wrong = to.Predictions(np.concatenate([y, 1 - y]), np.concatenate([P, P]), weight=np.repeat([0.1, 1], len(y)))
    assert (len(check_class_order(right)), len(check_class_order(wrong))) == (0, 1)


def hard(k=3):
    y, P = rows(k=k, signal=2.0)
    return to.Predictions(y, np.eye(k)[P.argmax(axis=1)])


def test_predicted_labels_are_noticed_in_every_form():
    y, P = rows(k=2, signal=2.0)
    called = P.argmax(axis=1)
    for preds in (
        hard(),
        to.Predictions(y, called),
        to.Predictions.from_confidence(np.ones(len(y)), called == y),
        to.Predictions.from_multilabel(np.eye(2)[y], np.eye(2)[called]),
    ):
        assert [note.code for note in check_hard_labels(preds)] == ["TN149"]
    assert (
        "confidence is 0 or 1"
        in check_hard_labels(to.Predictions.from_confidence(np.ones(len(y)), called == y))[0].text
    )


def test_one_fraction_is_enough_for_probabilities_wherever_it_lies():
    P = np.tile([0.0, 1.0], (100_000, 1))
    y = np.ones(len(P), dtype=int)
    assert check_hard_labels(to.Predictions(y, P)) != []
    P[-1] = [0.5, 0.5]
    assert check_hard_labels(to.Predictions(y, P)) == []
    assert check_hard_labels(to.Predictions([0, 1, 1], [0, 1, 1])) == []  # few rows may well be sure


def test_large_logits_are_no_labels():
    y, P = rows(k=2)
    assert check_hard_labels(to.Predictions.from_logits(y, 2000 * (P - 0.5))) == []


def test_measure_test_compare_and_fit_tell_of_labels_and_of_another_order():
    y, P = rows(k=2)
    for preds, code in ((hard(2), "TN149"), (to.Predictions(1 - y, P), "TN142")):
        assert code in codes(to.measure(preds, "ece", resamples=20))
        assert code in codes(to.test(preds, resamples=19))
        assert code in codes(to.draw(preds))
        assert code in codes(to.fit(preds, "temperature"))
        notes = to.compare(to.Predictions(y, P), preds, "brier", resamples=20).notes
        assert [note.text[:3] for note in notes if note.code == code] == ["b: "]


def test_a_tally_of_labels_tells_of_them_too():
    y, P = rows(k=2, signal=2.0)
    for preds in (hard(), hard(2), to.Predictions.from_confidence(np.ones(len(y)), P.argmax(axis=1) == y)):
        assert "TN149" in codes(to.measure(to.tally(preds), "ece", resamples=20))
    assert "TN149" not in codes(to.measure(to.tally(to.Predictions(y, P)), "ece", resamples=20))


def test_no_fix_is_looked_for_where_labels_or_another_order_were_handed_in():
    y, P = rows(k=3)
    for preds, code, word in (
        (hard(), "TN149", "predicted labels"),
        (to.Predictions((y + 1) % 3, P), "TN142", "a different order"),
    ):
        calibrator = to.fit(preds, "auto")
        assert (calibrator.calibration_map.name, codes(calibrator)) == ("identity", [code])
        assert "no recalibration attempted" in repr(calibrator)
        audited = to.audit(preds, resamples=99)
        fix = audited.to_dict()["recalibration"]
        assert (fix["chosen"], fix["confirmed"], fix["candidates"]) == ("identity", False, [])
        assert word in audited.verdict["sentence"]
        assert "temperature scaling" not in str(audited).lower()
        assert "not attempted" in str(audited)
        assert codes(audited).count(code) == 1


@pytest.mark.parametrize("labels", [[0, 2, 1, 2], [-1, 1, 1, -1], ["cat", "dog", "dog", "cat"]])
def test_labels_in_the_place_of_probabilities_are_recognized_as_labels(labels):
    with pytest.raises(to.InputError, match="predict_proba"):
        to.Predictions([0, 1, 1, 0], labels)


def test_doubts_are_none_for_probabilities():
    y, P = rows()
    assert plausibility_notes(to.Predictions(y, P)) == []


# Classes that are never observed


def shifted(n=200, k=4, seed=3):
    """Labels 1 to k − 1 of classes 1 to k, of which the last one is not observed, and random probabilities."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return 1 + rng.integers(0, k - 1, n), P


def noted(rows, code="TN185"):
    return [note.text for note in plausibility_notes(rows) if note.code == code]


def test_integer_labels_that_are_never_0_are_noted_with_a_remedy_that_works():
    y, P = shifted()
    (text,) = noted(to.Predictions(y, P))
    assert text == (
        f"Class 0 ({P[:, 0].sum():.1f} expected) was never observed. Labels that are numbers are read as positions 0 to"
        " 3: if they start at 1, pass classes=[1, 2, 3, 4]."
    )
    preds = to.Predictions(y, P, classes=[1, 2, 3, 4])
    assert preds.y.tolist() == (y - 1).tolist()
    assert noted(preds) == [f"Class 4 ({P[:, 3].sum():.1f} expected) was never observed."]


def test_text_names_with_shifted_labels_are_noted_too():
    y, P = shifted()
    frame = pd.DataFrame(P, columns=["p_ant", "p_bee", "p_cat", "p_dog"]).assign(label=y)
    (text,) = noted(to.read(frame).collect())
    assert text.startswith("Class ant (")
    assert text.endswith("if they start at 1, pass classes=[1, 2, 3, 4].")
    assert to.read(frame, classes=[1, 2, 3, 4]).collect().y.tolist() == (y - 1).tolist()


@pytest.mark.slow
def test_every_verb_notes_a_class_that_is_never_observed():
    y, P = shifted()
    preds = to.Predictions(y, P, group=np.arange(len(y)) % 2)
    results = {
        "measure": to.measure(preds, "ece", interval=None),
        "test": to.test(preds, resamples=19),
        "compare": to.compare(preds, preds[:], "brier", resamples=20),
        "fit": to.fit(preds, "temperature"),
        "draw": to.draw(preds),
        "audit": to.audit(preds, resamples=39),
        "by_group": to.by_group(preds, "brier", resamples=20),
        "table": to.table({"a": preds}, resamples=20),
        "measure a tally": to.measure(to.tally(to.Predictions(y, P)), "ece", interval=None),
        "test a tally": to.test(to.tally(to.Predictions(y, P)), resamples=19),
        "audit a tally": to.audit(to.tally(to.Predictions(y, P))),
    }
    counts = {verb: codes(result).count("TN185") for verb, result in results.items()}
    assert counts == dict.fromkeys(results, 1) | {"compare": 2, "fit": 0}
    # A fit has a note of its own on this, also in passes over the rows and from a tally.
    for calibrator in (results["fit"], to.fit(to.tally(to.Predictions(y, P)), "isotonic")):
        (text,) = [note.text for note in calibrator.notes if note.code == "TN501"]
        assert text.endswith("if they start at 1, pass classes=[1, 2, 3, 4].")


def test_few_expected_events_need_no_note():
    # Class 2 of three is expected in 4.9 of 49 rows, or in 5 of 50.
    P = np.tile([0.5, 0.4, 0.1], (50, 1))
    y = np.arange(50) % 2
    assert noted(to.Predictions(y, P)) == ["Class 2 (5.0 expected) was never observed."]
    assert noted(to.Predictions(y[:49], P[:49])) == []


def test_of_two_classes_one_that_is_always_observed_is_noted_if_the_other_was_expected():
    (text,) = noted(to.Predictions(np.ones(20, dtype=int), np.full(20, 0.6)))
    assert "Class 0 (8.0 expected)" in text
    assert "pass classes=[1, 2]" in text
    assert noted(to.Predictions(np.ones(20, dtype=int), np.full(20, 0.99))) == []


def test_the_scale_of_weights_and_rows_without_weight_make_no_difference():
    y, P = shifted()
    expected = noted(to.Predictions(y, P))
    assert noted(to.Predictions(y, P, weight=np.full(len(y), 1e-6))) == expected
    with_others = to.Predictions(
        np.append(y, [0, 0]), np.vstack([P, P[:2]]), weight=np.append(np.ones(len(y)), [0.0, 0.0])
    )
    assert noted(with_others) == expected


def test_votes_and_independent_labels_that_never_occur_are_noted():
    P = np.tile([0.5, 0.3, 0.2], (30, 1))
    votes = np.tile([2, 1, 0], (30, 1))
    assert noted(to.Predictions(votes, P)) == ["Class 2 (6.0 expected) was never observed."]
    assert noted(to.Predictions.from_multilabel(votes > 0, P)) == ["Class 2 (6.0 expected) was never observed."]


def test_answers_of_which_none_is_correct_are_noted():
    preds = to.Predictions.from_confidence(np.full(10, 0.6), np.zeros(10, dtype=int))
    assert noted(preds)[0].startswith("No answer is correct (6.0 expected).")
    assert "TN185" in codes(to.measure(to.tally(preds), "ece", resamples=20))
    assert noted(to.Predictions.from_confidence(np.full(10, 0.6), np.arange(10) == 3)) == []


# Outcomes that are predictions


def uncertain(n=400, k=3, seed=5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), n)


def test_predicted_classes_in_place_of_outcomes_are_noted_and_nothing_is_confirmed():
    for P in (uncertain(), uncertain(k=2)[:, 1]):
        called = (P > 0.5).astype(int) if P.ndim == 1 else P.argmax(axis=1)
        preds = to.Predictions(called, P)
        (text,) = noted(preds, "TN186")
        assert text.startswith("All 400 outcomes are the predicted class")
        calibrator = to.fit(preds, "auto")
        assert calibrator.calibration_map.name == "identity"
        audited = to.audit(preds, resamples=99)
        assert audited.verdict["sentence"].startswith("The outcomes equal the predicted classes")
        assert audited.to_dict()["recalibration"]["confirmed"] is False
        assert codes(audited).count("TN186") == 1
        assert "TN186" in codes(to.measure(to.tally(preds), "ece", resamples=20))


def test_a_few_other_outcomes_do_not_hide_predicted_classes():
    P = uncertain(n=1000)
    y = P.argmax(axis=1)
    y[:5] = (y[:5] + 1) % 3  # 0.5 %
    (text,) = noted(to.Predictions(y, P), "TN186")
    assert text.startswith("995 of 1,000 outcomes")
    y[5] = (y[5] + 1) % 3
    assert noted(to.Predictions(y, P), "TN186") == []


def test_a_sharp_model_that_is_never_wrong_is_left_alone():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 3, 2000)
    P = np.where(np.eye(3)[y] > 0, 0.999, 0.0005)
    assert plausibility_notes(to.Predictions(y, P)) == []


def test_an_underconfident_model_that_is_never_wrong_is_left_alone():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, 899)
    z = 2 * np.eye(3)[y] + rng.normal(scale=0.2, size=(899, 3))  # mean confidence about .79, all correct
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert (P.argmax(axis=1) == y).all()
    assert noted(to.Predictions(y, P), "TN186") == []


def test_calibrated_predictions_are_no_predicted_classes():
    rng = np.random.default_rng(8)
    for scale in (1, 5, 50):
        z = rng.normal(scale=scale, size=(3000, 3))
        P = np.exp(z - z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        y = np.minimum((rng.random(3000)[:, None] > P.cumsum(axis=1)).sum(axis=1), 2)
        assert noted(to.Predictions(y, P), "TN186") == []


# Confidences that are probabilities of one class


def test_the_probability_of_class_1_beside_correctness_is_noted_and_nothing_is_confirmed():
    rng = np.random.default_rng(9)
    p = rng.random(500)
    y = rng.random(500) < p
    preds = to.Predictions.from_confidence(p, (p > 0.5) == y)
    (text,) = noted(preds, "TN187")
    assert "max(p, 1 − p)" in text
    assert to.fit(preds, "auto").calibration_map.name == "identity"
    assert to.audit(preds, resamples=99).verdict["sentence"].startswith("The confidences seem to be probabilities of")
    assert "TN187" in codes(to.measure(to.tally(preds), "ece", resamples=20))
    # both remedies of the note
    assert plausibility_notes(to.Predictions(y, p)) == []
    assert plausibility_notes(to.Predictions.from_confidence(np.maximum(p, 1 - p), (p > 0.5) == y)) == []


@pytest.mark.parametrize("underconfidence", [0.5, 1, 3])
def test_low_confidences_of_ten_classes_are_left_alone(underconfidence):
    # Of 100 calibrated data sets, at a level of 1 % or less, more than 5 would be noted in 0.1 % of runs.
    rng = np.random.default_rng(10)
    n_noted = 0
    for _ in range(100):
        z = rng.normal(size=(500, 10))
        P, Q = (np.exp(t * z) / np.exp(t * z).sum(axis=1, keepdims=True) for t in (1, underconfidence))
        accuracy = Q[np.arange(500), P.argmax(axis=1)]
        n_noted += len(noted(to.Predictions.from_confidence(P.max(axis=1), rng.random(500) < accuracy), "TN187"))
    assert n_noted <= 5


def test_the_report_has_a_sentence_for_every_reason_not_to_recalibrate():
    assert set(IMPLAUSIBLE_DATA_TEXTS) == set(IMPLAUSIBLE_DATA_CODES)
