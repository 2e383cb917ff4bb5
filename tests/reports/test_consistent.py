"""Do the sentence, the short answers, the tables and the JSON of an audit say the same thing, whatever the data?"""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

import trueodds as to
from tests.reports.example import typed
from trueodds.core.results import Verdict
from trueodds.reports.audit_results import AuditResults
from trueodds.reports.family_wise_test import add_recalibration_to_family, recalibration_alpha
from trueodds.reports.text import terminal
from trueodds.reports.text.summary import summary_lines

TEST = Verdict("omnibus", "positive", 1.0, 0.5, 100, "")
WORLDS = 60  # in CI 500 were gone through when the rules were made; each run takes others of them


def world(seed):
    """Random predictions: 1 to 2,000 rows, 2 to 12 classes, sharp or flat, wrong in one way or none, with extras."""
    rng = np.random.default_rng([seed, 23])
    n, k = int(10 ** rng.uniform(0, 3.3)), int(rng.choice([2, 2, 3, 5, 12]))
    z = rng.normal(0, rng.choice([0.3, 1.0, 2.5]), (n, k))
    P = softmax(z, axis=1)
    how = rng.choice(["none", "temperature", "shift", "noise"])
    if how == "temperature":
        Q = softmax(z * rng.choice([0.5, 0.8, 1.5]), axis=1)
    elif how == "shift":
        Q = softmax(z + rng.normal(0, 0.7, k), axis=1)
    else:
        Q = 0.8 * P + 0.2 / k if how == "noise" else P
    y = (Q.cumsum(axis=1)[:, :-1] <= rng.random((n, 1))).sum(axis=1)
    extra = {}
    if rng.random() < 0.3:
        extra["group"] = {"site": rng.choice(["A", "B"], n)}
    if rng.random() < 0.2:
        extra["weight"] = rng.uniform(0.5, 2, n)
    if rng.random() < 0.2:
        extra["cluster"] = rng.integers(0, max(1, n // 3), n)
    if rng.random() < 0.1:
        P = np.round(P, 1) if k == 2 else P
        P = P / P.sum(axis=1, keepdims=True)
    return to.Predictions(y, P if k > 2 else P[:, 1], **extra)


def contradictions(audit):
    """What in one audit speaks against something else in it."""
    facts = audit.to_dict()
    verdict, alpha = facts["verdict"], facts["verdict"]["alpha"]
    sentence, p = verdict["sentence"], verdict["pvalue"]
    by_label = {fact.label: fact for fact in summary_lines(typed(facts))}
    problems = []

    def claim(holds, what):
        if not holds:
            problems.append(f"{what}: {sentence}")

    impossible = facts["data"]["true_class_zeros"] > 0
    fix = facts["recalibration"]
    confirmed = fix is not None and fix["confirmed"]
    evidence = p <= alpha or impossible
    claim(p <= alpha or not confirmed, "a confirmed fix and p")
    claim(verdict["rejected"] is None or verdict["rejected"] is evidence, "rejected and what speaks for it")
    claim(("Calibration rejected" in sentence) == (p <= alpha), "the sentence on the test and p")
    claim(
        (by_label["Miscalibration"].tone == "good")
        == (verdict["state"] == "no evidence" and not verdict["excludes_ideal"]),
        "the summary and the verdict",
    )
    claim(
        ("No evidence" in sentence) == (verdict["state"] == "no evidence" and not verdict["excludes_ideal"]),
        "the first words and the state",
    )
    excluded = [
        measure["name"]
        for measure in facts["standard_measures"]
        if measure["interval"]
        and measure["ideal"] is not None
        and not measure["interval"]["low"] <= measure["ideal"] <= measure["interval"]["high"]
    ]
    claim(verdict["excludes_ideal"] == excluded, "the intervals that exclude an ideal value")
    claim(verdict["rejected"] or not excluded or "excludes " in sentence, "a standard measure and the sentence")
    claim(verdict["state"] != "not tested" or (verdict["min_pvalue"] or 0) > alpha, "not tested and the smallest p")
    tests = {test["lens"]: test for test in facts["tests"]}
    claim(p == facts["tests"][0]["pvalue"], "the verdict's p and the family's")
    for test in facts["tests"]:
        claim(
            test["pvalue"] >= (test["min_pvalue"] or 0) * (1 - 1e-9), f"p below the smallest possible ({test['lens']})"
        )
    groups = facts["among_groups"]
    miscalibrated = [group["label"] for group in facts["groups"] if group["status"] == "miscalibrated"]
    claim(not miscalibrated or verdict["rejected"], f"groups are miscalibrated ({miscalibrated}) and the verdict")
    worst = typed(facts).established_worst_group
    claim(worst is None or worst.label in sentence, "the worst group and the sentence")
    claim(
        groups is None
        or all(
            (group["joint"] <= groups["alpha"]) == (group["status"] == "miscalibrated") for group in facts["groups"]
        ),
        "status and joint p",
    )
    for measure in facts["measures"]:
        ends, value = measure["interval"], measure["value"]
        if ends is None or value is None:
            continue
        claim(
            ends["low"] - 1e-9 <= value <= ends["high"] + 1e-9,
            f"{measure['estimator']} {measure['lens']} outside {ends}",
        )
        own = tests.get(measure["lens"])
        if measure["estimator"] == "ece" and own is not None and ends["low"] > 0:
            # The mean gap bounds the error. Its interval may exclude 0 although no test rejects; the verdict says so.
            is_explained = own["pvalue"] <= alpha or bool(facts["verdict"]["excludes_ideal"])
            claim(is_explained, f"an interval above 0 ({measure['lens']} {ends}) beside p = {own['pvalue']}")
    errors = {
        measure["lens"]: measure
        for measure in facts["measures"]
        if measure["estimator"] == "ece" and measure["interval"]
    }
    if {"confidence", "canonical"} <= set(errors):
        coarse, fine = (errors[lens]["interval"] for lens in ("confidence", "canonical"))
        rejected = tests["canonical"]["pvalue"] <= alpha
        lower = min(coarse["low"], errors["canonical"]["value"]) if rejected else 0.0
        claim(fine["low"] >= lower - 1e-12, "the canonical error below the coarser one")
        claim(fine["high"] >= coarse["high"] - 1e-12, "the canonical bound below the coarser one")
    standard = {measure["name"]: measure for measure in facts["standard_measures"]}
    slope = standard.get("calibration_slope")
    if verdict["state"] in ("overconfident", "underconfident") and "slope" in sentence:
        claim((slope["value"] < 1) == (verdict["state"] == "overconfident"), "the word and the slope")
        claim(not slope["interval"]["low"] <= 1 <= slope["interval"]["high"], "the slope's interval and the word")
    if verdict["state"] in ("too high", "too low"):
        claim((verdict["calibration_in_the_large"] < 0) == (verdict["state"] == "too high"), "the word and the level")
    claim(not confirmed or "No recalibration" not in sentence, "a confirmed fix and the sentence")
    if confirmed:
        scores = {measure["estimator"]: measure["value"] for measure in facts["measures"]}
        claim(
            abs((fix["log_loss_before"] or 0) - (scores["log_loss"] or 0)) < 1e-9, "the log loss before, and the scores"
        )
    text = terminal.render_text(facts)
    claim(re.sub(r"\s+", " ", sentence) in re.sub(r"\s+", " ", text), "the sentence is not in the text")
    return problems


@pytest.mark.usefixtures("reduced_candidates")
@pytest.mark.parametrize("first", range(0, WORLDS, 10))
def test_nothing_in_an_audit_contradicts_anything_else_in_it(first):
    problems = {seed: contradictions(to.audit(world(seed), resamples=199)) for seed in range(first, first + 10)}
    assert {seed: some for seed, some in problems.items() if some} == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "chosen"), [(4, "temperature"), (37, "ensemble_temperature"), (45, "bias_corrected_temperature")]
)
def test_nothing_contradicts_a_confirmed_recalibration_that_was_chosen_among_all(seed, chosen):
    audit = to.audit(world(seed), resamples=199)
    assert audit.to_dict()["recalibration"]["confirmed"]
    assert audit.to_dict()["recalibration"]["chosen"] == chosen
    assert contradictions(audit) == []


def test_the_family_of_a_tally_says_how_small_its_p_can_be() -> None:
    # By the largest floor of a lens it was more than the p beside it, and a level below it "not tested".
    rng = np.random.default_rng(3)
    P = softmax(rng.normal(0, 2, (600, 3)), axis=1)
    y = (P**0.6 / (P**0.6).sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :-1] <= rng.random((600, 1))
    document = to.audit(to.tally(to.Predictions(y.sum(axis=1), P)), resamples=199, alpha=0.02).to_dict()
    for test in document["tests"]:
        assert test["pvalue"] >= test["min_pvalue"] * (1 - 1e-9)
    assert document["verdict"]["state"] not in ("not tested", "no evidence")


def test_a_fix_counts_as_evidence_only_by_its_part_of_alpha() -> None:
    for pvalue, gain, joint, min_pvalue in (
        (0.04, 1e-9, 0.04 / 0.95, 0.001 / 0.95),  # the tests reject: their p stands
        (0.30, 0.001, 0.02, None),
        (0.30, 0.01, 0.20, None),
        (0.30, None, 0.30 / 0.95, 0.001 / 0.95),
    ):
        verdict = replace(TEST, pvalue=pvalue, min_pvalue=0.001)
        facts = AuditResults([], [], [verdict], None, None, 999, [])
        family, own = add_recalibration_to_family(facts, gain, 0.05).tests
        assert (family.pvalue, family.min_pvalue) == (pytest.approx(joint), min_pvalue and pytest.approx(min_pvalue))
        assert own is verdict
        assert (recalibration_alpha(verdict, 0.05) == 0.05) == (pvalue <= 0.0475)
