"""Does a registry name its members without loading them, and refuse what it does not know?"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.calibrators import CALIBRATORS
from trueodds.core.registry import Registry, dataclass_settings
from trueodds.core.suggestions import (
    PHRASES_OF_SYNONYM,
    UNRELATED_MEASURES,
    list_names,
    name_of_phrase,
    resolve_synonym,
    suggest_names,
)
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses import LENS_NAMES


@dataclass(frozen=True)
class Plain:
    """A member whose settings are its fields."""

    size: int = 3


SHAPES = Registry("shape", {"plain": f"{__name__}:Plain", "gone": "trueodds.no_such_module:Nothing"})


def test_names_load_no_method() -> None:
    assert SHAPES.names() == ("plain", "gone")


def test_listing_the_estimators_loads_no_module_of_theirs() -> None:
    code = (
        "import sys; from trueodds.estimators import ESTIMATORS; ESTIMATORS.names();"
        "print([m for m in sys.modules if m.startswith('trueodds.estimators.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.strip() == "[]"


def test_a_method_is_made_from_its_settings() -> None:
    assert SHAPES.make("plain", {"size": 5}) == Plain(5)
    assert dataclass_settings(Plain) == ("size",)


def test_an_unknown_method_or_setting_is_refused_with_the_near_ones() -> None:
    with refused("TO201", "'plane'", fix="plain"):
        SHAPES.load("plane")
    with pytest.raises(to.InputError, match=r"\[TO202\] The shape plain has no setting 'sice'. Did you mean size\?"):
        SHAPES.make("plain", {"sice": 5})


def test_near_names_come_first_else_all_are_listed() -> None:
    assert suggest_names("confidnce", ["confidence", "positive"]) == "Did you mean confidence?"
    assert suggest_names("zzz", ["b", "a"]) == "Known: a, b."


def test_the_words_of_other_libraries_are_known_where_ours_is_among_the_names():
    assert suggest_names("quantile", ["equal-mass", "uniform"]) == "Did you mean equal-mass?"
    assert suggest_names("Sigmoid", ["platt", "beta"]) == "Did you mean platt?"
    assert suggest_names("sigmoid", ["uniform"]) == "Known: uniform."


# Synonyms

SETTINGS = {"partition", "bins", "order", "resamples", "level", "min_prob", "equal-mass", "uniform"} | {
    "weight", "sample_weight", "group", "cluster", "classes", "rng",
}  # fmt: skip
FAMILIES = {"measure": ESTIMATORS, "test": TESTS, "fit": CALIBRATORS, "draw": DIAGRAMS}


def test_every_synonym_leads_to_a_name_or_setting_that_exists() -> None:
    known = SETTINGS.union(LENS_NAMES, *(family.names() for family in FAMILIES.values()))
    assert {name_of_phrase(phrase) for phrases in PHRASES_OF_SYNONYM.values() for phrase in phrases} <= known
    for text in UNRELATED_MEASURES.values():
        assert set(re.findall(r"'(\w+)'", text)) <= set(ESTIMATORS.names())


def test_what_a_synonym_says_to_set_can_be_set() -> None:
    preds = to.Predictions([0, 1] * 30, [0.2, 0.7] * 30)
    for phrase in {phrase for phrases in PHRASES_OF_SYNONYM.values() for phrase in phrases if " with " in phrase}:
        setting, _, value = phrase.partition(" with ")[2].strip("⟨⟩").partition("=")
        estimate = to.measure(preds, name_of_phrase(phrase), interval=None, **{setting: value.strip("'")})
        assert value.strip("'") in str({"lens": estimate.lens} | dict(estimate.settings)), phrase


def test_no_name_is_taken_for_another_one() -> None:
    for family in FAMILIES.values():
        assert all(resolve_synonym(name, family.names()) == [name] for name in family.names())


@pytest.mark.parametrize(
    ("verb", "word", "hint"),
    [
        ("measure", "expected_calibration_error", "Did you mean ece?"),
        ("measure", "Top-Label ECE", "Did you mean ece with lens='top-label'?"),
        ("measure", "classwise-ece", "Did you mean ece with lens='classwise'?"),
        ("measure", "maximum_calibration_error", "Did you mean mce?"),
        ("measure", "Adaptive-ECE", "Did you mean ace or ece with partition='equal-mass'?"),
        ("measure", "NLL", "Did you mean log_loss?"),
        ("measure", "cross-entropy", "Did you mean log_loss?"),
        ("measure", "LogLoss", "Did you mean log_loss?"),
        ("measure", "mse", "Did you mean brier?"),
        ("measure", "rmse", "Did you mean brier (its root is the RMSE)?"),
        ("measure", "calibration slope", "Did you mean calibration_slope?"),
        ("measure", "CITL", "Did you mean calibration_in_the_large?"),
        ("test", "CITL", "Did you mean cox?"),
        ("test", "log_loss", "log_loss is an estimator: to.measure(preds, 'log_loss')."),
        (
            "test",
            "classwise-ece",
            (
                "ece is an estimator: to.measure(preds, 'ece', lens='classwise'). Its test is"
                " to.test(preds, 'consistency', statistic='ece', lens='classwise')."
            ),
        ),
        ("measure", "O:E", "Did you mean o_e?"),
        ("measure", "ICI", "Did you mean ici?"),
        ("measure", "hosmer-lemeshow", "hosmer_lemeshow is a test: to.test(preds, 'hosmer_lemeshow')."),
        ("measure", "temperature_scaling", "temperature is a calibrator: to.fit(preds, 'temperature')."),
        ("draw", "calibration_plot", "Did you mean reliability?"),
        ("draw", "hist", "Did you mean confidence_histogram?"),
        ("fit", "hist", "Did you mean histogram?"),
        ("fit", "TS", "Did you mean temperature?"),
        ("fit", "sigmoid", "Did you mean platt?"),
        ("test", "HL", "Did you mean hosmer_lemeshow?"),
        ("test", "reliability_diagram", "reliability is a diagram: to.draw(preds, 'reliability')."),
    ],
)
def test_the_field_s_terms_get_a_hint_with_the_library_s_name(verb: str, word: str, hint: str) -> None:
    with pytest.raises(to.InputError) as refusal:
        getattr(to, verb)(to.Predictions([0, 1] * 30, [0.2, 0.7] * 30), word)
    assert (refusal.value.code, refusal.value.fix) == ("TO201", hint)


@pytest.mark.parametrize(
    ("call", "word", "hint"),
    [
        (lambda preds, **settings: to.measure(preds, "ece", **settings), "n_bootstrap", "Did you mean resamples?"),
        (lambda preds, **settings: to.measure(preds, "ece", **settings), "confidence_level", "Did you mean level?"),
        (lambda preds, **settings: to.compare(preds, preds, "ece", **settings), "n_boot", "Did you mean resamples?"),
        (lambda preds, **settings: to.compare(preds, preds, "ece", **settings), "conf_level", "Did you mean level?"),
        (lambda preds, **settings: to.test(preds, "cox", **settings), "confidence_level", "Did you mean level?"),
        (lambda preds, **settings: to.test(preds, "consistency", **settings), "n_bootstrap", "Did you mean resamples?"),
        (lambda preds, **settings: to.measure(preds, "ece", **settings), "n_bins", "Did you mean bins?"),
    ],
)
def test_a_keyword_of_the_verb_is_found_under_its_other_names(call: Any, word: str, hint: str) -> None:
    with pytest.raises(to.InputError) as refusal:
        call(to.Predictions([0, 1] * 30, [0.2, 0.7] * 30), **{word: 3})
    assert (refusal.value.code, refusal.value.fix) == ("TO202", hint)


@pytest.mark.parametrize("word", ["auc", "AUROC", "roc_auc", "c-statistic", "accuracy", "F1"])
def test_what_measures_no_calibration_is_refused_as_such(word: str) -> None:
    with pytest.raises(to.InputError) as refusal:
        to.measure(to.Predictions([0, 1] * 30, [0.2, 0.7] * 30), word)
    assert "'brier'" in refusal.value.fix
    assert "Did you mean" not in refusal.value.fix


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    names = [f"name_{i}" for i in range(1000)]
    text = list_names(names)
    assert text.startswith("Known: name_0, name_1, ")
    assert len(text) < 240
    shown = text.count("name_")
    assert text.endswith(f" and {1000 - shown} more.")
    assert list_names(["x" * 500]) == f"Known: {'x' * 500}."
