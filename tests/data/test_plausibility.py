"""Are labels in another order than the columns, and predicted labels in place of probabilities, seen and told?"""

import numpy as np
import pytest

import trueodds as to
from trueodds.data.plausibility import check_class_order, check_hard_labels, plausibility_notes


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
