"""Are results frozen, printed in one line, strict in JSON and exact in what they say?"""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.api.by_group import by_group
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_percent
from trueodds.core.json_files import strict_json
from trueodds.core.results import Estimate, Interval, Verdict, is_score
from trueodds.diagrams.base import Diagram
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import ProperScore
from trueodds.hypotests.group_results import ByGroup, Gap, Group
from trueodds.io.answers import read_answers
from trueodds.resampling.comparison.comparison_results import Comparison

ESTIMATE = Estimate(
    "ece",
    "confidence",
    0.0398,
    10_000,
    Interval(0.0357, 0.0441, 0.95, "redraw"),
    0.0061,
    settings={"partition": "uniform 15", "distance": "tv", "order": 1.0},
    notes=(Note("TN105", "few <rows>"),),
)
VERDICT = Verdict("consistency", "confidence", 0.0398, 0.001, 10_000, "each label is drawn", min_pvalue=0.001)


def test_an_estimate_is_one_line_and_prints_its_notes_below() -> None:
    assert (
        repr(ESTIMATE) == "ece 0.0398 [0.0357, 0.0441] 95% · noise floor 0.0061 · n=10,000"
        " · lens confidence, 15 uniform bins, tv distance"
    )
    assert str(ESTIMATE) == f"{ESTIMATE!r}\n  [TN105] few <rows>"
    assert str(Estimate("ece", "confidence", 0.0398, 7)) == "ece 0.0398 · n=7 · lens confidence"


def test_the_noise_floor_of_a_proper_score_is_printed_as_the_expected_score() -> None:
    assert " · expected if calibrated 0.0061 · " in repr(replace(ESTIMATE, estimator="brier"))
    scores = {name for name in ESTIMATORS.names() if issubclass(ESTIMATORS.load(name), ProperScore)}
    assert scores | {"log_loss_recalibrated"} == {name for name in ESTIMATORS.names() if is_score(name)}
    assert " · expected if calibrated 0.0061 · " in repr(replace(ESTIMATE, estimator="risk@0.8"))
    preds = to.Predictions([0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20)
    assert str(to.compare(preds, preds, "brier", interval="percentile")).count("(expected if calibrated ") == 2


def test_a_verdict_prints_in_one_line() -> None:
    verdict = replace(VERDICT, settings={"resamples": 999})
    assert str(verdict) == (
        "consistency p ≤ 0.001: calibration rejected at the 5% level (999 draws) · statistic 0.0398 · n=10,000 · lens"
        " confidence · null: each label is drawn"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"pvalue": 0.05, "min_pvalue": None}, "p = 0.05: calibration rejected at the 5% level · "),
        ({"pvalue": 0.051}, "p = 0.051: calibration not rejected at the 5% level (999 draws) · "),
        ({"pvalue": 0.1, "min_pvalue": 0.1}, "p ≤ 0.1: calibration cannot be rejected at the 5% level (999 draws) · "),
        ({"settings": {"resamples": 999, "decision": "within", "margin": 0.1}}, "p ≤ 0.001 (999 draws) · "),
        ({"settings": {"hypothesis": "temperature"}}, "p ≤ 0.001: hypothesis rejected at the 5% level · "),
        ({"pvalue": math.nan, "min_pvalue": None}, "p = nan · "),
    ],
)
def test_a_verdict_states_its_decision_and_the_draws(changes: dict[str, Any], text: str) -> None:
    verdict = replace(VERDICT, **({"settings": {"resamples": 999}} | changes))
    assert repr(verdict).startswith(f"consistency {text}statistic 0.0398")


def test_the_expected_value_of_a_ratio_is_not_called_a_noise_floor() -> None:
    preds = to.Predictions([0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20)
    for name in ("o_e", "calibration_in_the_large"):
        line = repr(to.measure(preds, name, resamples=50))
        assert "expected if calibrated" in line
        assert "noise floor" not in line


def test_a_verdict_ends_with_a_short_null_hypothesis_and_keeps_all_of_it() -> None:
    null = "labels drawn from the predicted probabilities, predictions kept fixed, so that z is standard normal"
    verdict = replace(VERDICT, null=null)
    assert str(verdict).endswith(" · null: labels drawn from the predicted probabilities, predictions kept fixed")
    assert verdict.to_dict()["null"] == null


def test_an_estimate_is_a_number_and_a_verdict_names_its_two() -> None:
    assert float(ESTIMATE) == ESTIMATE.value == 0.0398
    assert VERDICT.value == VERDICT.statistic
    for use in (lambda: float(VERDICT), lambda: f"{VERDICT:.3f}"):
        with pytest.raises(
            InputError, match=r"\[TO207\].* p-value 0\.001\. Use verdict\.pvalue or verdict\.statistic\."
        ):
            use()
    assert f"{VERDICT}" == str(VERDICT)


@pytest.mark.parametrize("result", [ESTIMATE, VERDICT, ESTIMATE.interval])
def test_results_are_frozen_small_and_copied_whole(result: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(result, fields(result)[0].name, "other")
    assert len(fields(result)) <= 12
    assert not hasattr(result, "__dict__")
    assert pickle.loads(pickle.dumps(result)) == result


def test_nan_has_a_note_and_no_interval_however_a_result_is_made() -> None:
    lost = replace(ESTIMATE, value=math.nan)
    assert (lost.interval, [note.code for note in lost.notes]) == (None, ["TN105", "TN155"])
    assert replace(lost, settings={}).notes == lost.notes  # said once
    assert "p-value and effect are undefined" in replace(VERDICT, pvalue=math.nan, effect=math.nan).notes[0].text
    assert "noise floor is undefined" in replace(ESTIMATE, noise_floor=math.nan).notes[-1].text


def test_an_interval_without_an_end_is_none() -> None:
    lost = replace(ESTIMATE, interval=Interval(math.nan, 0.1, 0.95, "redraw"))
    assert (lost.value, lost.interval, lost.notes[-1].code) == (0.0398, None, "TN155")


def test_an_undefined_difference_has_neither_p_value_nor_interval() -> None:
    models = {"a": ESTIMATE, "b": ESTIMATE}
    lost = Comparison("ece", "confidence", math.nan, 9, True, models, "", Interval(0, 1, 0.95, "mover"), 0.5)
    assert (lost.interval, lost.pvalue, lost.better, [note.code for note in lost.notes]) == (
        None,
        None,
        None,
        ["TN155"],
    )


def test_an_undefined_gap_has_no_interval_and_an_undefined_group_a_note() -> None:
    assert Gap("sex", "f", "m", math.nan, Interval(0, 1, 0.95, "mover")).interval is None
    groups = tuple(
        Group("sex", x, f"sex={x}", ESTIMATE, p, 1.0, None, "undecided") for x, p in (("f", math.nan), ("m", 0.5))
    )
    (note,) = ByGroup("ece", "confidence", groups, ESTIMATE, (), (), None, 0.95, "").notes
    assert note.code == "TN155"
    assert "of sex=f is undefined" in note.text


def test_json_is_strict() -> None:
    odd = Estimate(
        "log_loss",
        "canonical",
        math.inf,
        3,
        Interval(-math.inf, math.inf, 0.95, "x"),
        math.nan,
        parts={"class:0": math.inf},
        settings={"a": np.float64("nan"), "b": np.arange(2), "c": (1, np.int64(2)), "d": {"e": np.bool_(True)}},
    )
    document = json.loads(json.dumps(odd.to_dict(), allow_nan=False))
    assert (
        document["value"]
        is document["noise_floor"]
        is document["interval"]["low"]
        is document["interval"]["high"]
        is None
    )
    assert document["parts"] == {"class:0": None}
    assert document["settings"] == {"a": None, "b": [0, 1], "c": [1, 2], "d": {"e": True}}
    json.dumps(VERDICT.to_dict(), allow_nan=False)


def test_the_schemas_have_the_written_keys() -> None:
    # The keys that DESIGN fixes for `measure` and `test`
    assert list(ESTIMATE.to_dict()) == [
        "schema",
        "estimator",
        "lens",
        "value",
        "interval",
        "noise_floor",
        "debiased",
        "parts",
        "n",
        "settings",
        "notes",
    ]
    assert list(VERDICT.to_dict()) == [
        "schema", "test", "lens", "statistic", "pvalue", "min_pvalue", "family_pvalue", "effect", "parts", "n", "null",
        "settings", "notes",
    ]  # fmt: skip


def test_html_is_escaped() -> None:
    assert "few &lt;rows&gt;" in ESTIMATE._repr_html_()
    assert "<script>" not in Estimate("ece", "<script>", 0.1, 1)._repr_html_()
    assert "<ul>" not in VERDICT._repr_html_()


def test_every_result_shows_its_notes_in_print_and_in_a_notebook_and_is_one_line_in_a_list() -> None:
    p = np.random.default_rng(0).random(200)
    y = (np.random.default_rng(1).random(200) < p).astype(int)
    a, b = (to.Predictions(y, q, group={"g": np.arange(200) % 2}) for q in (p, p**2))
    draws = {"resamples": 50}
    results = [
        to.measure(a, "ece", resamples=20),
        to.test(a, **draws),
        to.compare(a, b, "brier", **draws),
        to.compare({"a": a, "b": b}, "brier", **draws),
        to.power(a, effect=0.1, simulations=20),
        by_group(a, **draws),
        to.fit(a, "auto"),
        to.draw(a),
        read_answers([{"c": 0.9, "correct": 1}, {"x": 1}], confidence="c", abstained="c"),
    ]
    for result in results:
        assert result.notes, result
        assert str(result).splitlines()[-len(result.notes) :] == [f"  {note}" for note in result.notes]
        assert "\n" not in repr(result)
        assert "TN" not in repr(result)
        if not isinstance(result, Diagram):  # shown as a picture
            assert all(note.code in result._repr_html_() for note in result.notes)


def test_an_audit_s_notes_are_those_that_it_prints() -> None:
    p = np.random.default_rng(0).random(300)
    y = (np.random.default_rng(1).random(300) < p**2).astype(int)
    report = to.audit(to.Predictions(y, p), resamples=99)
    printed = str(report).partition("\nNotes\n")[2]
    codes, of_diagrams = {note.code for note in report.notes}, {"TN246"}  # which the page shows beside them
    assert of_diagrams <= codes
    assert codes - of_diagrams == set(re.findall(r"\[(TN\d{3})\]", printed))
    assert len(set(report.notes)) == len(report.notes)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (None, "–"),
        (0, "0"),
        (0.0, "0"),
        (-0.05, "-0.05"),
        (0.0398123, "0.0398"),
        (0.001, "0.001"),
        (0.00049, "0.00049"),
        (1.2e-5, "1.2e-05"),
        (3.14159, "3.1416"),
        (123.456, "123"),
        (1e6, "1e+06"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_figure_reads_well(x: float | None, text: str) -> None:
    assert format_number(x) == text


def test_a_figure_keeps_what_it_shows_within_half_of_its_last_digit() -> None:
    for x in np.random.default_rng(0).random(500) * 10.0 ** np.random.default_rng(1).integers(-6, 3, 500):
        assert float(format_number(x)) == pytest.approx(x, rel=0.005, abs=5e-5 if x >= 0.001 else 0)


def test_a_level_is_a_percentage() -> None:
    # reliabilitydiag: the band level is always reported 0.9; uncertainty-calibration reads α as percent
    assert [format_percent(level) for level in (0.95, 0.999, 0.9, 0.995)] == ["95%", "99.9%", "90%", "99.5%"]


def test_what_json_does_not_know_is_written_as_text() -> None:
    assert strict_json(Note) == str(Note)
    assert strict_json({1: np.float32(0.5)}) == {"1": 0.5}


def test_a_result_is_formatted_as_its_number() -> None:
    assert f"{ESTIMATE:.3f}" == "0.040"
    assert format(ESTIMATE, ">9.1%") == "     4.0%"
    assert (f"{ESTIMATE}", f"{VERDICT}") == (str(ESTIMATE), str(VERDICT))
    with pytest.raises(ValueError, match="Unknown format code"):
        format(ESTIMATE, "d")


def test_estimates_and_verdicts_have_the_same_names() -> None:
    assert (VERDICT.value, VERDICT.interval) == (VERDICT.statistic, None)
    assert ESTIMATE.summary().split("\n") == [ESTIMATE.describe(), "  [TN105] few <rows>"]
    assert VERDICT.summary() == VERDICT.describe()


def test_the_frame_of_a_result_has_one_row_of_numbers() -> None:
    frame = ESTIMATE.frame()
    assert frame.to_dict("records") == [
        {
            "estimator": "ece", "lens": "confidence", "value": 0.0398, "low": 0.0357, "high": 0.0441,
            "noise_floor": 0.0061, "debiased": pytest.approx(math.nan, nan_ok=True), "n": 10_000,
        }
    ]  # fmt: skip
    row = VERDICT.frame().iloc[0]
    assert (row["test"], row["statistic"], row["pvalue"], row["min_pvalue"]) == ("consistency", 0.0398, 0.001, 0.001)
    assert math.isnan(row["effect"])
    assert VERDICT.frame()["family_pvalue"].dtype == np.float64  # NaN, not None


def test_summary_is_a_method_of_every_result() -> None:
    preds = to.Predictions([0, 1, 1, 0] * 20, [0.2, 0.7, 0.9, 0.4] * 20)
    results = [
        to.measure(preds, "brier"), to.test(preds, "spiegelhalter"), to.table({"a": preds}, ["brier"], interval=None),
        to.draw(preds), to.fit(preds, "temperature"),
    ]  # fmt: skip
    for result in results:
        assert isinstance(result.summary(), str), type(result)
        assert result.summary(), type(result)


def test_an_undefined_value_has_no_second_note_beside_the_one_that_explains_it() -> None:
    # TN155 ("another note may give the reason") followed the note with the reason.
    for y, p, code in (([0, 1, 1], [0.0, 0.5, 0.6], "TN268"), ([0, 0, 0], [0.2, 0.5, 0.6], "TN217")):
        estimate = to.measure(y, p, "calibration_slope", interval=None)
        assert [note.code for note in estimate.notes if note.code in ("TN155", code)] == [code]
