"""Does a gate fail when it should, and is what cannot be judged never a pass?"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from tests.cli.test_faults import labelled
from tests.reports.example import example, typed
from trueodds import Predictions, audit
from trueodds.cli import gate as gate_syntax
from trueodds.cli import gate_values
from trueodds.cli.audit import AUDITED_ESTIMATORS
from trueodds.cli.gate import AUDIT_SCOPE, Gate, Scope
from trueodds.cli.gate_values import GatedAudit, GatedResult, evaluate_gate
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate, Interval
from trueodds.estimators import ESTIMATORS

FOUR_ANSWERS = Predictions.from_confidence([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1])


def bare(gate: Gate) -> Estimate:
    """An estimate of which nothing but the value is known; of selective prediction, that of four answers."""
    if gate.base_name in ("aurc", "risk"):
        return to.measure(FOUR_ANSWERS, gate.name, resamples=99)
    return Estimate(gate.name, gate.lens or "canonical", 0.1, 899)


def of_estimate(estimate: Estimate) -> GatedResult:
    return GatedResult(gate_syntax.measure_scope("ece", {}), estimate)


def gate_passed(text: str, report: dict[str, Any] | None = None, measure: Any = bare) -> bool:
    audited = example() if report is None else report
    answer = GatedAudit(result=typed(audited), measure=measure)
    return not evaluate_gate(Gate.parse(text), answer)[0]


# The example: ece confidence .2507 [.2391, .2625] floor .0318 debiased .2488, classwise .0418, canonical .2533.
@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("ece>0.25", False),
        ("ece>0.26", True),
        ("ece>0.2507", True),
        ("ece>=0.2507", False),
        ("ece<0.2507", True),
        ("ece<=0.2507", False),
        ("ece.low>0.24", True),
        ("ece.low>0.23", False),
        ("ece.high<0.27", False),
        ("ece.floor>0.03", False),
        ("ece.noise_floor>0.04", True),
        ("ece.debiased>0.2488", True),
        ("ece@classwise>0.04", False),
        ("ece@classwise>0.05", True),
        ("ece.low@canonical>0.2388", True),
        ("ece@class:8>0.07", False),
        ("ece@class:0>0.07", True),
        ("brier>0.18", False),
        (" ece > 25e-2 ", False),
        ("pvalue<=0.01", False),
        ("smece>0.05", False),  # not in the audit, so it is measured: 0.1
        ("mce@classwise>0.2", True),
        # Of four answers in the order of confidence the third is wrong: (0 + 0 + 1/3 + 1/4)/4 = 7/48 = 0.1458.
        ("aurc>0.14", False),
        ("aurc>0.15", True),
        ("risk@0.5>0.01", True),
        # One of four is wrong at a coverage of 1. None of two is at 0.5: the exact limit is 1 − 0.025^(1/2) = 0.8419.
        ("risk@1>0.24", False),
        ("risk@1.0>0.26", True),
        ("risk@0.5.high>0.84", False),
        ("risk.high@0.5>0.85", True),
        ("risk@.5.low>=0.1", True),
        ("risk.high@5e-1@confidence>0.84", False),
    ],
)
def test_a_gate_compares_the_number_it_names(text: str, passed: bool) -> None:
    assert gate_passed(text) is passed


def test_reject_is_the_verdict_of_the_family() -> None:
    assert not gate_passed("reject")
    report = example()
    report["verdict"] |= {"rejected": False, "pvalue": 0.2, "reason": "family-wise p 0.2 > 0.05"}
    assert gate_passed("reject", report)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ece",
        "ece=0.1",
        "ece>",
        "ece>a",
        "ece>nan",
        "ece<inf",
        "ece.upper>0.1",
        "reject>0.1x",
        ">0.1",
        "ece>>0.1",
        "0.1<ece",
        "expected>0.1",
        "ece.high[worst]>0.1",  # the group comes first
        "ece[worst]@classwise>0.1",
        "brier.debiased>0.1",  # noise does not pull a score up
        "risk>0.1",
        "risk@1.5>0.1",
        "risk@0>0.1",
        "risk@0.8.upper>0.1",
        "risk@0.8.5>0.1",
        "risk@high>0.1",
        "risk@0.5.debiased>0.1",
        "aurc.debiased>0.1",
        "foo>1",
        "ece>5",  # five percent is 0.05; this gate would always hold
        "ece@classwise>=1.01",
    ],
)
def test_what_is_no_condition_is_refused_before_the_work(text: str) -> None:
    with pytest.raises(InputError) as problem:
        Gate.parse(text)
    assert problem.value.code == "TO610"


@pytest.mark.parametrize(
    "text",
    [
        "ece.low@classwise>0.01",  # has no interval
        "ece.low@class:0>0.1",
        "pvalue<=0.0001",  # 999 redraws cannot tell
        "ece[nobody]>0.1",
    ],
)
def test_what_cannot_be_evaluated_is_an_error_not_a_pass(text: str) -> None:
    with pytest.raises(InputError) as problem:
        gate_passed(text)
    assert problem.value.code == "TO611"


def test_reject_without_a_p_value_cannot_be_evaluated() -> None:
    report = example()
    report["verdict"] |= {"rejected": None, "pvalue": None}
    with pytest.raises(InputError, match="TO611"):
        gate_passed("reject", report)


def test_a_misspelled_estimator_gets_suggestions() -> None:
    with pytest.raises(InputError, match="brier"):
        gate_passed("brie>0.1")
    with pytest.raises(InputError, match="ece"):
        gate_passed("expected_calibration_error>0.1")


def test_an_infinite_number_is_above_every_bound() -> None:
    # The JSON of the audit contains null; the number itself is infinite, and no model passes with it.
    def infinite(gate: Gate) -> Estimate:
        return Estimate(gate.name, "canonical", math.inf, 899)

    assert not gate_passed("log_loss>0.1", measure=infinite)
    assert gate_passed("log_loss<0.1", measure=infinite)


def test_an_undefined_number_is_no_pass() -> None:
    def undefined(gate: Gate) -> Estimate:
        return Estimate(gate.name, "canonical", math.nan, 899)

    with pytest.raises(InputError) as problem:
        gate_passed("rankcs>0.1", measure=undefined)
    assert problem.value.code == "TO611"


@pytest.mark.parametrize(
    ("value", "noise_floor", "known", "debiased"),
    [
        (0.24, 0.03, None, 0.24),  # clear of its floor: nothing is taken off
        (0.05, 0.04, 0.03, 0.03),
        (0.03, 0.04, 0.0, 0.0),
    ],
)
def test_a_debiased_number_is_there_near_the_noise_floor_and_clear_of_it(
    value: float, noise_floor: float, known: float | None, debiased: float
) -> None:
    estimate = Estimate("ece", "confidence", value, 100, None, noise_floor, known)
    number, _ = gate_values.find_part_and_remark(estimate, Gate.parse("ece.debiased>0"))
    assert number == pytest.approx(debiased, abs=1e-12)


def test_every_estimator_with_a_default_has_a_debiased_number_or_its_gate_is_refused() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(400)
    preds = Predictions((rng.random(400) < p**2).astype(int), p)
    for name in ("ece", "rmsce", "mce", "ace", "smece", "ks", "skce", "debiased_l2", "ici", "brier", "log_loss"):
        if ESTIMATORS.load(name).interval == "bca":
            with pytest.raises(InputError, match="TO610"):
                Gate.parse(f"{name}.debiased>0.01")
            continue
        gate = Gate.parse(f"{name}.debiased>0.01")
        number, _ = gate_values.find_part_and_remark(to.measure(preds, name, resamples=100), gate)
        assert number is not None, name
        assert math.isfinite(number), name


def of_groups(**groups: Estimate) -> GatedAudit:
    lines = [
        {"label": label, "error": estimate.value, "interval": estimate.interval and estimate.interval.to_dict(),
         "noise_floor": estimate.noise_floor, "n": estimate.n, "status": "within"}
        for label, estimate in groups.items()
    ]  # fmt: skip
    return GatedAudit(result=typed(example() | {"groups": lines}), measure=bare)


def test_the_worst_group_is_the_one_that_comes_nearest_to_failing() -> None:
    near, distant = (Estimate("ece", "", x, 9, Interval(x / 2, 2 * x, 0.95, "bca"), 0.01) for x in (0.05, 0.2))
    groups = of_groups(near=near, far=distant)
    assert evaluate_gate(Gate.parse("ece[worst]>0.1"), groups)[0]
    assert evaluate_gate(Gate.parse("ece[worst]<0.1"), groups)[0]
    assert not evaluate_gate(Gate.parse("ece[worst].low>0.1"), groups)[0]
    assert not evaluate_gate(Gate.parse("ece[near]>0.1"), groups)[0]
    assert "(far" in evaluate_gate(Gate.parse("ece[worst]>0.1"), groups)[1]


@pytest.mark.parametrize("missing", ["alpha", "min_pvalue"])
def test_a_report_without_the_level_of_its_groups_does_not_pass(missing: str) -> None:
    report = example()
    among_groups = {**(report["among_groups"] or {}), "alpha": 0.05, "min_pvalue": 0.001, missing: None}
    verdict = {**report["verdict"], "rejected": False}
    audited = typed(report | {"among_groups": among_groups, "verdict": verdict})
    with pytest.raises(InputError, match=r"\[TO611\].*level.*Repeat the audit"):
        evaluate_gate(Gate.parse("reject"), GatedAudit(result=audited, measure=bare))


def test_the_error_of_a_group_is_debiased_as_that_of_all_rows_is() -> None:
    groups = of_groups(near=Estimate("ece", "", 0.05, 9, None, 0.04), far=Estimate("ece", "", 0.2, 9, None, 0.04))
    assert groups.number(Gate.parse("ece[near].debiased>0"))[0] == pytest.approx(0.03)  # √(.05² − .04²)
    assert groups.number(Gate.parse("ece[far].debiased>0"))[0] == 0.2


def test_a_group_without_a_number_is_no_pass() -> None:
    large, single = Estimate("ece", "", 0.05, 9, Interval(0.02, 0.1, 0.95, "bca"), 0.01), Estimate("ece", "", 0.5, 1)
    with pytest.raises(InputError, match="single"):
        evaluate_gate(Gate.parse("ece[worst].low>0.04"), of_groups(whole=large, single=single))
    assert evaluate_gate(Gate.parse("ece[worst].low>0.01"), of_groups(whole=large, single=single))[
        0
    ]  # one fails: so does the gate


def test_a_command_refuses_bounds_on_what_it_does_not_have() -> None:
    for text, scope in (
        ("ece>0.1", gate_syntax.measure_scope("smece", {})),
        ("smece.high>0.1", gate_syntax.measure_scope("smece", {"interval": None})),
        ("beyond", gate_syntax.test_scope(None)),
        ("ece>0.1", gate_syntax.test_scope(0.1)),
        ("reject", gate_syntax.ANSWERS_SCOPE),
        ("difference.floor>0", gate_syntax.compare_scope("ece", {})),
        ("ece@classwise>0", Scope("groups", estimators=("ece",))),
    ):
        with pytest.raises(InputError) as problem:
            Gate.parse(text, scope)
        assert problem.value.code == "TO610"
        assert problem.value.fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [("ece==0.05", ">, >=, < or <="), ("ece=>0.05", ">, >=, < or <="), ("ece>0.05,brier>0.5", "Repeat --fail-on")],
)
def test_conditions_of_other_languages_are_shown_in_the_right_syntax(text: str, fix: str) -> None:
    with pytest.raises(InputError, match=fix):
        Gate.parse(text)


def test_a_bound_in_percent_is_suggested_as_a_share() -> None:
    with pytest.raises(InputError, match=r"ece>0\.05"):
        Gate.parse("ece>5")
    assert Gate.parse("brier>1.5").limit == 1.5  # a Brier score reaches 2


@pytest.mark.parametrize(
    ("text", "scope", "reason"),
    [
        ("ece<0", AUDIT_SCOPE, "at least 0"),
        ("ece<-1", AUDIT_SCOPE, "at least 0"),
        ("ece<=-0.1", AUDIT_SCOPE, "at least 0"),
        ("ece>1", AUDIT_SCOPE, "at most 1"),
        ("brier<0", AUDIT_SCOPE, "at least 0"),
        ("pvalue<0", AUDIT_SCOPE, "at least 0"),
        ("pvalue>1", AUDIT_SCOPE, "at most 1"),
        ("difference<-1.5", gate_syntax.compare_scope("ece", {}), "at least -1"),
        ("difference>1.5", gate_syntax.compare_scope("ece", {}), r"at most 1.*'difference>0\.015' for 1\.5 %"),
    ],
)
def test_a_bound_that_no_value_lies_beyond_is_refused_on_both_sides(text: str, scope: Scope, reason: str) -> None:
    with pytest.raises(InputError, match=f"TO610.*{reason}"):
        Gate.parse(text, scope)


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("ece<=0", AUDIT_SCOPE),
        ("ece>=1", AUDIT_SCOPE),
        ("debiased_l1<-0.01", AUDIT_SCOPE),  # below 0 by chance
        ("bas<-2", AUDIT_SCOPE),
        ("rmsce.debiased<0", AUDIT_SCOPE),  # less its noise, below 0 by chance
        ("difference>1.5", gate_syntax.compare_scope("log_loss", {"min_prob": 1e-9})),
        ("difference<-1.5", gate_syntax.compare_scope("brier", {})),
        ("difference.high<-0.5", gate_syntax.compare_scope("ece", {})),
        ("ece>1.5", gate_syntax.measure_scope("ece", {"distance": "kl", "level": 0.9})),
        ("statistic<-3", gate_syntax.test_scope(None)),
    ],
)
def test_a_bound_within_the_range_of_the_estimator_is_read(text: str, scope: Scope) -> None:
    assert Gate.parse(text, scope).text == text


@pytest.mark.slow
def test_no_estimator_is_below_its_lower_bound() -> None:
    rng = np.random.default_rng(0)
    for n in (6, 40):
        for p in (rng.random(n), np.full(n, 0.5)):
            preds = Predictions((rng.random(n) < p).astype(int), p)
            for name in ESTIMATORS.names():
                if ESTIMATORS.load(name).lower_bound == -math.inf:
                    continue
                try:
                    estimate = to.measure(preds, name, resamples=50)
                except InputError:  # one that needs votes, a cost or more rows
                    continue
                lowest = ESTIMATORS.load(name).lower_bound
                ends = [] if estimate.interval is None else [estimate.interval.low]
                assert all(math.isnan(number) or number >= lowest - 1e-12 for number in [estimate.value, *ends]), name


@pytest.mark.parametrize(
    ("text", "scope", "fix"),
    [
        ("ECE>0.5", AUDIT_SCOPE, "Did you mean ece?"),
        ("log-loss>0.5", AUDIT_SCOPE, "Did you mean log_loss?"),
        ("Brier Score>0.5", AUDIT_SCOPE, "Did you mean brier?"),
        ("ECE>0.5", gate_syntax.measure_scope("ece", {}), "Did you mean ece?"),
        ("P-Value<0.05", gate_syntax.test_scope(None), "Did you mean pvalue?"),
        ("ece.LOW>0.05", AUDIT_SCOPE, "Did you mean low?"),
    ],
)
def test_a_name_in_another_spelling_gets_the_right_one(text: str, scope: Scope, fix: str) -> None:
    with pytest.raises(InputError) as problem:
        Gate.parse(text, scope)
    assert (problem.value.code, problem.value.fix) == ("TO610", fix)


def test_only_names_that_are_accepted_are_listed_as_lenses() -> None:
    estimate = Estimate("ece", "positive", 0.1, 99, parts={"over": 0.1, "under": 0.0, "class:cat": 0.1})
    with pytest.raises(InputError) as problem:
        evaluate_gate(Gate.parse("ece@classwise>0.1"), of_estimate(estimate))
    assert (problem.value.code, problem.value.fix) == ("TO611", "Known: class:cat, positive.")


def test_the_gate_knows_what_every_audit_measures() -> None:
    audited = audit(Predictions([0, 1] * 20, [0.5] * 40), resamples=39).to_dict()
    assert {measure["estimator"] for measure in audited["measures"]} == set(AUDITED_ESTIMATORS)


def test_a_number_that_rounds_to_the_bound_is_printed_with_all_its_digits() -> None:
    for value, expected in ((0.05001, "ece@l = 0.05001 > 0.05"), (0.0501, "ece@l = 0.0501 > 0.05")):
        estimate = Estimate("ece", "l", value, 10)
        assert evaluate_gate(Gate.parse("ece>0.05"), of_estimate(estimate)) == (True, expected)
    passed = of_estimate(Estimate("ece", "l", 0.04, 10))
    assert evaluate_gate(Gate.parse("ece>0.05"), passed) == (False, "ece@l = 0.04, not > 0.05")


def test_a_path_leads_to_the_same_number_in_a_result_and_in_its_json() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = (rng.random(300) < p**1.5).astype(int)
    preds, other = Predictions(y, p, group={"site": np.arange(300) % 2}), Predictions(y, np.sqrt(p))
    results: list[tuple[Scope, Any]] = [
        (gate_syntax.test_scope(None), to.test(preds, "consistency", resamples=99)),
        (gate_syntax.compare_scope("brier", {}), to.compare(preds, other, "brier", resamples=99)),
        (gate_syntax.groups_scope("ece", {}), to.by_group(preds, resamples=99)),
        (AUDIT_SCOPE, typed(to.audit(preds, resamples=99).to_dict())),
    ]
    for scope, result in results:
        report, min_pvalue = result.to_dict(), scope.paths["min_pvalue"]
        assert gate_values.read_path(report, min_pvalue) == gate_values.read_path(result, min_pvalue)
        for path in (path for parts in scope.numbers.values() for path in parts.values()):
            number = gate_values.read_path(report, path)
            assert number == gate_values.read_path(result, path)
            assert isinstance(number, float), path
    estimate = to.measure(preds, "ece", resamples=99)
    for part, path in gate_values.ESTIMATE_PATHS.items():
        number = gate_values.read_path(estimate.to_dict(), path)
        assert number == gate_values.read_path(estimate, path), part
        assert isinstance(number, float) is (part != "debiased" or estimate.debiased is not None)


# On the command line, from the file to the exit code


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("ece.low>0.02", 1),  # the whole interval lies above: the error is there for sure
        ("ece.high>0.02", 1),
        ("ece.low>0.9", 0),
        ("ece.high<0.01", 0),
        ("brier.low>0.01", 1),
    ],
)
def test_ends_of_intervals_decide_the_exit_code(run: Run, overconfident: str, gate: str, code: int) -> None:
    done = run("audit", overconfident, "--resamples", 99, "--fail-on", gate)
    assert done.exit_code == code
    assert f"gate {'failed' if code else 'passed'}: " in done.stderr


@pytest.mark.slow
def test_the_lower_end_passes_a_calibrated_model_whose_bare_error_is_above_the_bound(run: Run, honest: str) -> None:
    # 400 rows of a calibrated model have an ece of about .05 by chance: the value fails where the lower end does not
    assert run("audit", honest, "--resamples", 99, "--fail-on", "ece>0.02").exit_code == 1
    assert run("audit", honest, "--resamples", 99, "--fail-on", "ece.low>0.02").exit_code == 0


def test_an_end_of_an_interval_that_is_not_there_exits_with_2(run: Run, honest: str, folder: Path) -> None:
    part = folder / "a.tally.json"
    run("tally", honest, "--out", part)
    done = run("audit", part, "--resamples", 99, "--fail-on", "ece.low@classwise>0.02")
    assert done.exit_code == 2
    assert done.stderr.startswith("error TO611\n")


@pytest.mark.parametrize(
    ("words", "gate", "code"),
    [
        (["measure", "{over}"], "ece.debiased>0.01", 1),  # clear of the noise floor, and as bad as can be
        (["measure", "{over}"], "ece.high>0.9", 0),
        (["measure", "{over}", "--estimator", "smece"], "ece>0.01", 2),
        (["measure", "{over}", "--lens", "classwise"], "ece@class:1>0.01", 1),
        (["measure", "{over}"], "ece@classwise>0.01", 2),  # measured through confidence
        (["test", "{over}", "--resamples", 99], "reject", 1),
        (["test", "{honest}", "--resamples", 99], "reject", 0),
        (["test", "{over}", "--resamples", 99], "pvalue<=0.01", 1),
        (["test", "{over}", "--resamples", 9], "reject", 2),  # 10 draws cannot reject at 5 %
        (["test", "{over}", "--resamples", 99, "--margin", 0.05], "beyond", 1),
        (["test", "{over}", "--resamples", 99, "--margin", 0.9], "beyond", 0),
        (["groups", "{over}", "--group", "site", "--resamples", 99], "ece[worst].low>0.02", 1),
        (["groups", "{honest}", "--group", "site", "--resamples", 99], "reject", 0),
        (["groups", "{over}", "--group", "site", "--resamples", 99], "ece[site=C]>0.02", 2),
        (["compare", "{over}", "{honest}", "--estimator", "brier"], "difference.high<0.9", 1),
        (["compare", "{over}", "{honest}", "--estimator", "brier"], "difference.low>0.9", 0),
        (["compare", "{over}", "{honest}", "{over}", "--names", "a,b,c"], "reject", 2),
        (["audit", "{over}", "--resamples", 99], "smece.high>0.01", 1),
        (["audit", "{over}", "--resamples", 99], "ece.low@class:1>0.01", 1),
        (["audit", "{over}", "--resamples", 99], "aurc>0.9", 0),
        (["audit", "{over}", "--resamples", 99], "pvalue<=0.05", 1),
        (["audit", "{honest}", "--resamples", 99], "pvalue<0.02", 0),
        (["audit", "{over}", "--resamples", 99], "risk@0.8>0.01", 1),
        (["audit", "{over}", "--resamples", 99, "--group", "site"], "ece[worst].debiased>0.01", 1),
        (["audit", "{over}", "--resamples", 99], "ece[worst]>0.01", 2),  # no --group
    ],
    ids=str,
)
def test_gates_of_every_command_decide_the_exit_code(
    run: Run, overconfident: str, honest: str, words: list[Any], gate: str, code: int
) -> None:
    done = run(*(str(word).format(over=overconfident, honest=honest) for word in words), "--fail-on", gate)
    assert done.exit_code == code, done.output
    if code == 2:
        assert labelled(done.stderr)["code"] in ("TO610", "TO611")
    else:
        name = "family-wise p" if (words[0], gate[:6]) == ("audit", "pvalue") else re.split("[<>]", gate)[0]
        assert f"gate {'failed' if code else 'passed'}: {name}" in done.stderr


@pytest.mark.slow
def test_gates_of_answers(run: Run, folder: Path) -> None:
    records = folder / "records.jsonl"
    lines = [f'{{"c": {0.5 + i / 50}, "ok": {"true" if i % 4 else "false"}}}' for i in range(20)]
    records.write_text("\n".join(lines), encoding="utf-8")
    words = ("answers", records, "--confidence", "c", "--correct", "ok")
    # 15 of 20 are right; of the surest 10 (i = 10 … 19) those with i = 12, 16 are wrong: 0.2.
    for gate, code in (("accuracy<0.8", 1), ("accuracy<0.7", 0), ("risk@0.5>0.19", 1), ("risk@0.5>0.21", 0),
                       ("coverage<1", 0), ("ece>0.1", 2), ("aurc.high>0.01", 1)):  # fmt: skip
        assert run(*words, "--fail-on", gate).exit_code == code, gate


def test_what_an_audit_does_not_measure_is_refused_before_its_work(run: Run, overconfident: str, folder: Path) -> None:
    out = folder / "a.json"
    done = run("audit", overconfident, "--resamples", 99, "--fail-on", "ece@top-9>0.9", "--json", out)
    assert (done.exit_code, out.exists()) == (2, False)
    assert labelled(done.stderr)["code"] == "TO204"


def test_a_gate_that_failed_is_reported_beside_one_that_cannot_be_evaluated(
    run: Run, honest: str, folder: Path
) -> None:
    part = folder / "a.tally.json"
    run("tally", honest, "--out", part)
    done = run("audit", part, "--resamples", 99, "--fail-on", "ece>0.001", "--fail-on", "ece.low@classwise>0.02")
    assert done.exit_code == 2
    assert "gate failed: ece" in done.stderr
    assert "error TO611" in done.stderr


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ece[west]>0.1", "Did you mean region=west?"),
        ("ece[West]>0.1", "Did you mean region=west?"),
        ("ece[wset]>0.1", "Did you mean region=west?"),
        ("ece[site=west]>0.1", "Did you mean region=west?"),
        ("ece[4]>0.1", "Did you mean region=4 or floor=4?"),
        ("ece[wrost]>0.1", "Did you mean worst?"),
        ("ece[nothing of this]>0.1", "Known: floor=4, region=4, region=west, worst."),
    ],
)
def test_the_value_of_a_group_is_recognized_before_the_word_worst(text: str, hint: str) -> None:
    labels = ("region=west", "region=4", "floor=4")
    groups = of_groups(**dict.fromkeys(labels, Estimate("ece", "", 0.2, 9)))
    with pytest.raises(InputError) as error:
        evaluate_gate(Gate.parse(text), groups)
    assert (error.value.code, error.value.fix) == ("TO611", hint)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("ece@classwise.low>0.02", "ece.low@classwise>0.02"),
        ("smece@confidence.floor >= 0.5", "smece.floor@confidence>=0.5"),
    ],
)
def test_a_part_after_the_lens_is_moved_before_it(text: str, moved: str) -> None:
    with pytest.raises(InputError) as error:
        Gate.parse(text)
    assert (error.value.code, error.value.fix) == ("TO610", f"Write '{moved}'.")
    assert Gate.parse(moved).part in ("low", "noise_floor")
    assert Gate.parse("ece@class:a.low>0.02").lens == "class:a.low"
