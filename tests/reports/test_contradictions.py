"""Do the sentence, the short answers, the tables, the page and the JSON of an audit say the same, whatever the data?"""

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

import trueodds as to
from tests.reports.contradictions import audit_of_world, contradictions
from trueodds.core.results import Verdict
from trueodds.reports.family_wise_test import add_recalibration_to_family, recalibration_alpha

TEST = Verdict("omnibus", "positive", 1.0, 0.5, 100, "")
WORLDS, SLOW_WORLDS = 25, int(os.environ.get("TRUEODDS_WORLDS", "150"))  # 500 worlds take about ten minutes
CHOSEN_AMONG_ALL = {3: "llo", 6: "temperature", 13: "ensemble_temperature"}  # confirmed in these worlds


def contradictions_in(seeds):
    found = {seed: contradictions(audit_of_world(seed)) for seed in seeds}
    return {seed: problems for seed, problems in found.items() if problems}


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
@pytest.mark.parametrize("first", range(0, WORLDS, 5))
def test_nothing_in_an_audit_contradicts_anything_else_in_it(first):
    assert contradictions_in(range(first, first + 5)) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
@pytest.mark.parametrize("first", range(WORLDS, SLOW_WORLDS, 25))
def test_nothing_contradicts_anything_else_in_any_of_many_audits(first):
    assert contradictions_in(range(first, first + 25)) == {}


@pytest.mark.slow
def test_nothing_contradicts_a_recalibration_that_was_chosen_among_all():
    assert contradictions_in(range(30)) == {}
    recalibrations = {seed: audit_of_world(seed).to_dict()["recalibration"] for seed in CHOSEN_AMONG_ALL}
    assert {seed: found["chosen"] for seed, found in recalibrations.items() if found["confirmed"]} == CHOSEN_AMONG_ALL


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
        family, own = add_recalibration_to_family([verdict], gain, 0.05)
        assert (family.pvalue, family.min_pvalue) == (pytest.approx(joint), min_pvalue and pytest.approx(min_pvalue))
        assert own is verdict
        assert (recalibration_alpha(verdict, 0.05) == 0.05) == (pvalue <= 0.0475)
