"""May a model be handed in as arrays? `(y_true, y_prob)` is one argument of every verb, and two arrays say the same."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from trueodds.by_group import by_group
from trueodds.core.errors import InputError, describe
from trueodds.sources.models import in_pairs
from trueodds.studies import STUDIES

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


def told(result: Any) -> Any:
    return {name: each for name, each in result.to_dict().items() if name != "data"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_pair_of_arrays_and_two_arrays_are_predictions(verb: str) -> None:
    call, words, settings = VERBS[verb]
    expected = told(call(PREDS, *words, **settings))
    assert told(call((Y, P), *words, **settings)) == expected
    assert told(call(Y, P, *words, **settings)) == expected
    assert told(call(pd.Series(Y), P.tolist(), **settings)) == told(call(PREDS, **settings))


@pytest.mark.parametrize("verb", VERBS)
def test_arrays_in_the_wrong_order_are_refused_with_the_right_one(verb: str) -> None:
    call, words, settings = VERBS[verb]
    for given in ((P, Y), ((P, Y),)):
        with pytest.raises(InputError, match=r"TO109.*\(y_true, y_prob\)"):
            call(*given, *words, **settings)


@pytest.mark.parametrize("verb", [*VERBS, "compare", "by_group"])
def test_a_verb_is_documented_with_one_argument_for_the_data_and_takes_its_chance_as_rng(verb: str) -> None:
    call = by_group if verb == "by_group" else getattr(to, verb)
    names = list(inspect.signature(call).parameters)
    assert "y_prob" not in names
    assert "seed" not in names
    assert ("rng" in names) == (verb != "tally")  # sums have no chance in them
    assert call.__name__ == verb
    assert call.__doc__


@pytest.mark.parametrize("name", STUDIES.names())
def test_a_study_takes_its_chance_as_rng(name: str) -> None:
    settings = inspect.signature(STUDIES.load(name)).parameters
    assert "rng" in settings
    assert "seed" not in settings


@pytest.mark.parametrize("verb", [*(verb for verb in VERBS if verb != "draw"), "by_group"])
def test_several_models_are_refused_where_one_is_asked_for(verb: str) -> None:
    call, words, settings = VERBS.get(verb, (by_group, (), {}))
    for models in ({"a": PREDS, "b": OTHER}, {"a": (Y, P), "b": (Y, P**2)}):
        with pytest.raises(InputError, match=r"TO205.*2 models: a, b.*to\.compare\(models\)"):
            call(models, *words, **settings)
    if verb != "by_group":
        with pytest.raises(InputError, match="2 models: a, b"):
            call(Y, {"a": P, "b": P**2}, *words, **settings)


@pytest.mark.parametrize(
    "given",
    [
        (PREDS, OTHER),
        ((Y, P), (Y, P**2)),
        (Y, P, P**2),
        ((Y, P), P**2),
        (Y.tolist(), P.tolist(), (P**2).tolist()),
    ],
    ids=["predictions", "pairs", "arrays", "outcomes once", "lists"],
)
def test_two_models_are_compared_however_they_are_handed_in(given: tuple[Any, ...]) -> None:
    found = to.compare(*given, "brier", resamples=50)
    assert told(found) == told(to.compare(PREDS, OTHER, "brier", resamples=50))
    assert (found.names, found.paired) == (("a", "b"), True)


@pytest.mark.parametrize(
    "given",
    [({"a": PREDS, "b": OTHER},), ({"a": (Y, P), "b": (Y, P**2)},), (Y, {"a": P, "b": P**2}), ([(Y, P), (Y, P**2)],)],
    ids=["predictions", "pairs", "outcomes once", "list"],
)
def test_several_models_are_ranked_however_they_are_handed_in(given: tuple[Any, ...]) -> None:
    found = to.compare(*given, "brier", resamples=50)
    assert told(found) == told(to.compare({"a": PREDS, "b": OTHER}, "brier", resamples=50))


def test_several_models_are_drawn_however_they_are_handed_in() -> None:
    expected = told(to.draw({"a": PREDS, "b": OTHER}, "comparison"))
    assert told(to.draw({"a": (Y, P), "b": (Y, P**2)}, "comparison")) == expected
    assert told(to.draw(Y, {"a": P, "b": P**2}, "comparison")) == expected


@pytest.mark.parametrize("given", [(PREDS,), (PREDS, "brier"), (Y, P), (Y, P, "brier")], ids=str)
def test_one_model_is_no_comparison(given: tuple[Any, ...]) -> None:
    with pytest.raises(InputError, match="needs two models"):
        to.compare(*given)


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
def test_an_array_out_of_place_is_told_predictions_and_is_not_poured_into_the_message(call: Any) -> None:
    with pytest.raises(InputError, match=r"Predictions\(y_true, y_prob\)") as refusal:
        call()
    assert len(str(refusal.value)) < 300
    assert "array(" not in str(refusal.value)


def test_groups_of_two_arrays_are_asked_for_by_their_own_name() -> None:
    with pytest.raises(InputError, match=r"TO409.*group="):
        by_group(Y, P)
    with pytest.raises(InputError, match=r"TO202.*Predictions\(y_true, y_prob, group=…\)"):
        by_group(Y, P, group=np.array(["f", "m"] * 150))


def test_names_and_votes_are_outcomes_too() -> None:
    votes = np.array([[3, 1], [0, 4], [2, 2]] * 20)
    Q = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]] * 20)
    assert to.measure(votes, Q, "brier").value == to.measure(to.Predictions(votes, Q), "brier").value
    assert to.measure(pd.DataFrame(votes), pd.DataFrame(Q), "brier").value == to.measure((votes, Q), "brier").value


def test_paths_and_frames_stay_what_they_are() -> None:
    frame = pd.DataFrame({"label": Y, "p_0": 1 - P, "p_1": P})
    for given in ((["a.csv", "b.csv"], "ece"), (frame, "ece"), ("a.csv",), (PREDS, P), ()):
        assert in_pairs(*given) is given or in_pairs(*given) == given
    assert to.measure(frame, "ece", interval=None).n == 300


def test_a_long_value_is_described_by_type_and_size() -> None:
    assert [describe(each) for each in (P, list(range(99)), {"a": 1}, "eec")] == [
        "ndarray of shape (300,)", "list of 99", "{'a': 1}", "'eec'",
    ]  # fmt: skip
    assert len(describe("x" * 500)) == 80
    assert len(str(InputError("TO101", "Problem.", repr(np.zeros(900)), "Fix."))) < 400
