"""May a model be handed in as arrays? `(y_true, y_prob)` is one argument of every verb, and two arrays say the same."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trueodds as to
from trueodds.api.array_arguments import pair_arrays
from trueodds.api.by_group import by_group
from trueodds.core.errors import InputError, describe

rng = np.random.default_rng(0)
P = rng.random(300)
Y = (rng.random(300) < P**1.5).astype(int)
PREDS, OTHER = to.Predictions(Y, P), to.Predictions(Y, P**2)
VERBS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "measure": (to.measure, ("ece",), {"resamples": 20}),
    "test": (to.test, ("consistency",), {"resamples": 19}),
    "power": (to.power, ("consistency",), {"effect": 0.1, "simulations": 20}),
    "fit": (to.fit, ("platt",), {}),
    "draw": (to.draw, ("reliability",), {}),
    "tally": (to.tally, (), {}),
    "audit": (to.audit, (), {"resamples": 99}),
}


def without_data(result: Any) -> Any:
    return {name: value for name, value in result.to_dict().items() if name != "data"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_pair_of_arrays_and_two_arrays_are_predictions(verb: str) -> None:
    call, words, settings = VERBS[verb]
    expected = without_data(call(PREDS, *words, **settings))
    assert without_data(call((Y, P), *words, **settings)) == expected
    assert without_data(call(Y, P, *words, **settings)) == expected
    assert without_data(call(pd.Series(Y), P.tolist(), *words, **settings)) == expected


@pytest.mark.parametrize("verb", VERBS)
def test_arrays_in_the_wrong_order_are_refused_with_the_right_one(verb: str) -> None:
    call, words, settings = VERBS[verb]
    for arguments in ((P, Y), ((P, Y),)):
        with pytest.raises(InputError, match=r"TO109.*\(y_true, y_prob\)"):
            call(*arguments, *words, **settings)


@pytest.mark.parametrize("verb", [*VERBS, "compare", "by_group"])
def test_a_verb_is_documented_with_one_argument_for_the_data_and_takes_its_chance_as_rng(verb: str) -> None:
    call = by_group if verb == "by_group" else getattr(to, verb)
    names = list(inspect.signature(call).parameters)
    assert "y_prob" not in names
    assert "seed" not in names
    assert ("rng" in names) == (verb != "tally")  # sums have no chance in them
    assert call.__name__ == verb
    assert call.__doc__


@pytest.mark.parametrize("verb", [*(verb for verb in VERBS if verb != "draw"), "by_group"])
def test_several_models_are_refused_where_one_is_expected(verb: str) -> None:
    call, words, settings = VERBS.get(verb, (by_group, (), {}))
    for models in ({"a": PREDS, "b": OTHER}, {"a": (Y, P), "b": (Y, P**2)}):
        with pytest.raises(InputError, match=r"TO205.*2 models: a, b.*to\.compare\(models\)"):
            call(models, *words, **settings)
    if verb != "by_group":
        with pytest.raises(InputError, match="2 models: a, b"):
            call(Y, {"a": P, "b": P**2}, *words, **settings)


@pytest.mark.parametrize(
    "arguments",
    [
        (PREDS, OTHER),
        ((Y, P), (Y, P**2)),
        (Y, P, P**2),
        ((Y, P), P**2),
        (Y.tolist(), P.tolist(), (P**2).tolist()),
    ],
    ids=["predictions", "pairs", "arrays", "outcomes once", "lists"],
)
def test_two_models_are_compared_however_they_are_handed_in(arguments: tuple[Any, ...]) -> None:
    comparison = to.compare(*arguments, "brier", resamples=50)
    assert without_data(comparison) == without_data(to.compare(PREDS, OTHER, "brier", resamples=50))
    assert (comparison.names, comparison.paired) == (("a", "b"), True)


@pytest.mark.parametrize(
    "arguments",
    [({"a": PREDS, "b": OTHER},), ({"a": (Y, P), "b": (Y, P**2)},), (Y, {"a": P, "b": P**2}), ([(Y, P), (Y, P**2)],)],
    ids=["predictions", "pairs", "outcomes once", "list"],
)
def test_several_models_are_ranked_however_they_are_handed_in(arguments: tuple[Any, ...]) -> None:
    ranking = to.compare(*arguments, "brier", resamples=50)
    assert without_data(ranking) == without_data(to.compare({"a": PREDS, "b": OTHER}, "brier", resamples=50))


def test_several_models_are_drawn_however_they_are_handed_in() -> None:
    expected = without_data(to.draw({"a": PREDS, "b": OTHER}, "comparison"))
    assert without_data(to.draw({"a": (Y, P), "b": (Y, P**2)}, "comparison")) == expected
    assert without_data(to.draw(Y, {"a": P, "b": P**2}, "comparison")) == expected


@pytest.mark.parametrize("arguments", [(PREDS,), (PREDS, "brier"), (Y, P), (Y, P, "brier")], ids=str)
def test_one_model_is_no_comparison(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="needs two models"):
        to.compare(*arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda: to.measure(P, "ece"),
        lambda: to.measure([Y, P], "ece"),
        lambda: to.measure(PREDS, P),
        lambda: to.test(PREDS, Y),
        lambda: to.fit(PREDS, P),
        lambda: to.compare({"a": P, "b": P**2}, "brier"),
        lambda: by_group(Y, P, np.array(["f", "m"] * 150)),
    ],
    ids=[f"call {number}" for number in range(7)],
)
def test_an_array_out_of_place_gets_the_advice_predictions_and_is_not_printed_in_full(call: Any) -> None:
    with pytest.raises(InputError, match=r"Predictions\(y_true, y_prob\)") as refusal:
        call()
    assert len(str(refusal.value)) < 300
    assert "array(" not in str(refusal.value)


def test_groups_of_two_arrays_are_passed_by_their_own_name() -> None:
    with pytest.raises(InputError, match=r"TO409.*group="):
        by_group(Y, P)
    with pytest.raises(InputError, match=r"TO202.*Predictions\(y_true, y_prob, group=…\)"):
        by_group(Y, P, group=np.array(["f", "m"] * 150))


TABLES = {"pandas": lambda frame: frame, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("library", TABLES)
def test_two_frames_with_labels_are_two_models(library: str) -> None:
    one, other = (TABLES[library](pd.DataFrame({"label": Y, "p_0": 1 - p, "p_1": p})) for p in (P, P**2))
    expected = to.compare(PREDS, OTHER, "brier", resamples=50)
    assert without_data(to.compare(one, other, "brier", resamples=50)) == without_data(expected)
    ranked = without_data(to.compare([PREDS, OTHER], "brier", resamples=50))
    for several in ((one, other), [one, other], {"a": one, "b": other}):
        assert without_data(to.compare(several, "brier", resamples=50)) == ranked
    assert to.measure(one, "ece", interval=None).value == to.measure(PREDS, "ece", interval=None).value


def test_two_mappings_of_columns_are_two_models() -> None:
    one, other = ({"label": Y, "p_0": 1 - p, "p_1": p} for p in (P, P**2))
    expected = to.compare(PREDS, OTHER, "brier", resamples=50)
    assert without_data(to.compare(one, other, "brier", resamples=50)) == without_data(expected)


@pytest.mark.parametrize("library", TABLES)
def test_the_columns_of_a_frame_name_the_classes(library: str) -> None:
    table = TABLES[library]
    expected = to.measure(Y, np.stack([1 - P, P], axis=1), "brier", interval=None).value
    for names in (("p_0", "p_1"), ("0", "1"), ("proba_0", "proba_1")):
        frame = pd.DataFrame({names[1]: P, names[0]: 1 - P})  # the second class first
        preds = to.Predictions(Y, table(frame))
        assert (preds.classes, [note.code for note in preds.notes]) == ((1, 0), ["TN302"])
        assert to.measure(Y, table(frame), "brier", interval=None).value == pytest.approx(expected, rel=1e-12)
        assert to.Predictions(Y, table(frame[list(names)])).classes == (0, 1)
    words = np.where(Y == 1, "yes", "no")
    for names in (("yes", "no"), ("p_yes", "p_no")):
        preds = to.Predictions(words, table(pd.DataFrame({names[0]: P, names[1]: 1 - P})))
        assert preds.classes == ("yes", "no")
        assert to.measure(preds, "brier", interval=None).value == pytest.approx(expected, rel=1e-12)


def test_the_columns_of_logits_name_the_classes() -> None:
    z = np.log(P / (1 - P))
    preds = to.Predictions.from_logits(Y, pd.DataFrame({"p_1": z, "p_0": np.zeros(300)}))
    assert preds.classes == (1, 0)
    assert np.allclose(preds.p[:, 0], P)


def test_columns_in_another_order_than_the_classes_or_the_votes_are_refused() -> None:
    frame = pd.DataFrame({"p_1": P, "p_0": 1 - P})
    votes = pd.DataFrame({"v_0": 1 - Y, "v_1": Y})
    labels = pd.DataFrame({"a": Y, "b": 1 - Y})
    for call in (
        lambda: to.Predictions(Y, frame, classes=[0, 1]),
        lambda: to.Predictions(votes, frame),
        lambda: to.Predictions(votes.to_numpy(), frame),
        lambda: to.Predictions.from_multilabel(labels, pd.DataFrame({"b": 1 - P, "a": P})),
        lambda: to.calibrators.Temperature().fit(frame, Y),
    ):
        with pytest.raises(InputError, match=r"TO113.*another order"):
            call()
    assert to.Predictions(votes, frame[["p_0", "p_1"]]).n == 300
    assert to.Predictions(votes[["v_1", "v_0"]], frame).classes == (1, 0)


def test_columns_whose_names_say_nothing_keep_their_order() -> None:
    for names in (("a", "b"), ("gpt4", "claude3")):
        assert to.Predictions(Y, pd.DataFrame({names[0]: 1 - P, names[1]: P})).classes == (0, 1)
    with pytest.raises(InputError, match=r"TO105.*'no'"):
        to.Predictions(["no", "yes"], pd.DataFrame({"a": [0.2, 0.3], "b": [0.8, 0.7]}))


@pytest.mark.parametrize(
    ("y_true", "y_prob", "code"),
    [
        ([], [], "TO108"),
        (np.array(1), np.array(0.5), "TO101"),
        ((label for label in Y), (row for row in P), "TO114"),
        (Y, None, "TO101"),
        (Y, {}, "TO114"),
        (None, P, "TO101"),
        (Y, 0.5, "TO101"),
    ],
    ids=["empty", "scalars", "generators", "no y_prob", "no columns", "no y_true", "a number"],
)
def test_what_is_no_array_is_refused_by_a_code(y_true: Any, y_prob: Any, code: str) -> None:
    with pytest.raises(InputError, match=code):
        to.measure(y_true, y_prob, "ece")
    with pytest.raises(InputError, match="TO"):
        to.compare(y_true, y_prob, P, "ece")


def test_tuples_and_ranges_are_arrays() -> None:
    # two rows, the labels 0 and 1 with the probabilities .8 and .3 of the second class: (.8² + .7²)/2
    for y_true, y_prob in (((0, 1), ((0.2, 0.8), (0.7, 0.3))), (range(2), [0.8, 0.3])):
        assert to.measure(y_true, y_prob, "brier", interval=None).value == pytest.approx(0.565)
        assert to.compare(y_true, y_prob, y_prob, "brier", interval=None).difference == 0


def test_arrays_are_taken_by_their_names() -> None:
    expected = without_data(to.measure(PREDS, "ece", interval=None))
    assert without_data(to.measure(y_true=Y, y_prob=P, interval=None)) == expected
    assert without_data(to.measure("ece", y_true=Y, y_prob=P, interval=None)) == expected
    assert without_data(to.measure(Y, y_prob=P, estimator="ece", interval=None)) == expected
    with pytest.raises(InputError, match=r"TO302.*Predictions\(y_true, y_prob\)"):
        to.measure(y_true=Y)


def test_more_positional_arguments_than_a_verb_has_are_refused_by_a_code() -> None:
    for call in (
        lambda: to.measure(PREDS, P, "ece"),
        lambda: to.measure(Y, P, "ece", "positive"),
        lambda: to.compare(Y, P, P, "ece", "positive"),
        lambda: to.tally(Y, P, "positive"),
    ):
        with pytest.raises(InputError, match=r"TO202.*positional argument"):
            call()


def test_a_list_of_arrays_is_several_models() -> None:
    expected = without_data(to.compare([PREDS, OTHER, (Y, P**3)], "brier", resamples=50))
    for several in ([P, P**2, P**3], (P, P**2, P**3), [P.tolist(), (P**2).tolist(), (P**3).tolist()]):
        assert without_data(to.compare(Y, several, "brier", resamples=50)) == expected
    assert to.compare(Y, (P, P**2), "brier", resamples=50).order == to.compare([PREDS, OTHER], "brier").order
    rows = np.stack([1 - P, P], axis=1).tolist()  # a list of rows is one model
    assert to.compare(Y, rows, P**2, "brier", interval=None).difference == pytest.approx(
        to.compare(PREDS, OTHER, "brier", interval=None).difference
    )


def test_two_mappings_of_models_get_the_advice_to_pass_one() -> None:
    with pytest.raises(InputError, match=r"TO205.*one mapping.*\{'a': p_a, 'b': p_b\}"):
        to.compare({"a": (Y, P)}, {"b": (Y, P**2)}, "brier")


def test_swapped_arrays_are_reported_with_the_order_of_the_function_that_was_called() -> None:
    with pytest.raises(InputError, match=r"TO109.* fit takes \(y_true, y_prob\)"):
        to.fit(P, Y)
    with pytest.raises(InputError, match=r"TO109.* This fit takes \(y_prob, y_true\)"):
        to.calibrators.Temperature().fit(Y, P)
    with pytest.raises(InputError, match=r"TO109.* Predictions take \(y_true, y_prob\)"):
        to.Predictions(P, Y)


def test_names_and_votes_are_outcomes_too() -> None:
    votes = np.array([[3, 1], [0, 4], [2, 2]] * 20)
    Q = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]] * 20)
    assert to.measure(votes, Q, "brier").value == to.measure(to.Predictions(votes, Q), "brier").value
    assert to.measure(pd.DataFrame(votes), pd.DataFrame(Q), "brier").value == to.measure((votes, Q), "brier").value


def test_paths_and_frames_stay_what_they_are() -> None:
    frame = pd.DataFrame({"label": Y, "p_0": 1 - P, "p_1": P})
    for arguments in ((["a.csv", "b.csv"], "ece"), (frame, "ece"), ("a.csv",), (PREDS, P), ()):
        assert pair_arrays(*arguments) is arguments or pair_arrays(*arguments) == arguments
    assert to.measure(frame, "ece", interval=None).n == 300


def test_a_long_value_is_described_by_type_and_size() -> None:
    assert [describe(value) for value in (P, list(range(99)), {"a": 1}, "eec")] == [
        "ndarray of shape (300,)", "list of 99", "{'a': 1}", "'eec'",
    ]  # fmt: skip
    assert len(describe("x" * 500)) == 80
    assert len(str(InputError("TO101", "Problem.", repr(np.zeros(900)), "Fix."))) < 400


def test_results_of_two_named_classes_name_the_event() -> None:
    words = np.where(Y == 1, "yes", "no")
    preds = to.Predictions(words, pd.DataFrame({"p_no": 1 - P, "p_yes": P}), group=np.arange(len(Y)) % 2)
    results = [
        to.measure(preds, "brier", interval=None),
        to.measure(preds, "ece", interval=None),
        to.measure(to.tally(preds), "ece", interval=None),
        to.test(preds, resamples=19),
        to.compare(preds, preds[:], "brier", resamples=20),
        to.by_group(preds, "brier", resamples=20),
    ]
    for result in results:
        assert result.to_dict()["settings"]["event"] == "yes"
        assert "(event: class yes)" in str(result)
    assert to.audit(preds, resamples=39).to_dict()["data"]["event"] == "yes"
    for lens in ("confidence", "class:no"):
        assert "event" not in to.measure(preds, "ece", lens=lens, interval=None).settings
    assert "event" not in str(to.measure(PREDS, "ece", interval=None))  # class 1 of 0 and 1
