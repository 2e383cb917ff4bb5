"""The subgroups of an audit: judged as `by_group` judges them, shown as they stand, and never fine for want of rows."""

import json
import re

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests import reference
from tests.reports.example import example, typed
from tests.test_schemas import assert_valid
from trueodds.api.by_group import by_group
from trueodds.reports.analysis import analyze_rows
from trueodds.reports.audit import audit
from trueodds.reports.family_wise_test import GROUP_WEIGHT, RECALIBRATION_WEIGHT
from trueodds.reports.html.audit_page import render_html
from trueodds.reports.subgroups import GroupSpec, adjust_by_holm
from trueodds.reports.text import group_tables
from trueodds.reports.text import terminal as report
from trueodds.reports.text.summary import summary_lines


def simulated(n=600, wrong=0.0, seed=0, **extra):
    """Two columns; where both are 1 the outcomes are rarer than said."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, n)
    a, b = rng.integers(0, 2, n), rng.integers(0, 3, n)
    y = (rng.random(n) < np.where((a == 1) & (b == 1), p * (1 - wrong), p)).astype(int)
    return to.Predictions(y, p, group={"a": a, "b": b}, **extra)


def codes(result):
    return {note["code"] for note in result["notes"]}


@pytest.fixture(scope="module")
def crossed():
    return audit(simulated(wrong=0.7), crossings=True, resamples=199)


# Values


@pytest.mark.slow
def test_the_audit_says_of_groups_what_by_group_says():
    preds = simulated(wrong=0.7)
    document, alone = audit(preds, crossings=2).to_dict(), by_group(preds, crossings=2).to_dict()
    of_the_audit = ("accuracy", "standard_measures")
    groups = [{name: group[name] for name in group if name not in of_the_audit} for group in document["groups"]]
    assert groups == alone["groups"]
    assert document["among_groups"]["widest"] == alone["widest"]
    multicalibration = document["among_groups"]["multicalibration"]
    assert multicalibration == {name: alone["multicalibration"][name] for name in multicalibration}
    assert document["among_groups"]["min_pvalue"] == alone["settings"]["min_pvalue"] == 1 / 1000


def test_the_groups_by_hand():
    # a: .5 said twice, both came: .5 off. b: .2 said of five, one came: right. Right answers: .5 is no answer of 1
    # (the first class wins a tie), so none of a; four of five of b.
    preds = to.Predictions([1, 1, 1, 0, 0, 0, 0], [0.5, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2], group=list("aabbbbb"))
    groups = audit(preds, resamples=99).to_dict()["groups"]
    assert [(group["label"], group["n"]) for group in groups] == [("group=a", 2), ("group=b", 5)]
    assert [group["error"] for group in groups] == pytest.approx([0.5, 0.0])
    assert [group["accuracy"] for group in groups] == pytest.approx([0.0, 0.8])
    assert [(group["mean_prob"], group["event_rate"]) for group in groups] == [
        pytest.approx((0.5, 1.0)),
        pytest.approx((0.2, 0.2)),
    ]


def test_holm_where_draws_do_not_hang_together():
    # 3 · .01, then 2 · .02, then .5
    adjusted = adjust_by_holm([0.02, 0.5, 0.01], 0.001)
    assert adjusted.adjusted == pytest.approx([0.04, 0.5, 0.03])
    assert (adjusted.min_detectable, adjusted.min_pvalue, adjusted.has_joint_draws) == (
        [None] * 3,
        pytest.approx(0.003),
        False,
    )


@pytest.mark.slow
def test_adult_is_off_for_men_and_nobody_is_fine_for_want_of_rows():
    table, people = reference.data("adult_rf_predictions.parquet"), reference.data("adult_features.parquet")
    test = np.array(people["split"].to_pylist()) == "test"
    group = {name: np.array(people[name].to_pylist())[test] for name in ("sex", "race")}
    preds = to.Predictions(table["y"].to_numpy(), table["p"].to_numpy(), group=group)[:6000]
    document = audit(preds, crossings=True, resamples=199).to_dict()
    groups = {group["label"]: group for group in document["groups"]}
    assert len(groups) == 2 + 5 + 10
    assert groups["sex=Male"]["status"] == groups["race=White"]["status"] == "miscalibrated"
    assert all(group["status"] != "within" for group in groups.values() if group["n"] < 100)
    (widest,) = [gap for gap in document["among_groups"]["widest"] if gap["column"] == "sex"]
    assert (widest["first"], widest["second"], widest["settled"]) == ("sex=Male", "sex=Female", True)


# Properties


@pytest.mark.slow
def test_family_and_groups_each_keep_their_level():
    # Rejections of calibrated rows are at most Binomial(60, .05) each; of single p-values they are far more.
    families = groups = single = 0
    for seed in range(60):
        preds = simulated(100, seed=seed)
        whom = GroupSpec.from_rows(preds, preds, False, 0.05, seed)
        result = analyze_rows(preds, 39, 0.95, 0.05, np.random.default_rng(seed), lambda *_: None, whom)
        families += result.tests[0].pvalue <= 0.05
        groups += min(group.joint for group in result.groups.groups) <= 0.05
        single += min(group.pvalue for group in result.groups.groups) <= 0.05
    assert max(families, groups) <= binom.ppf(0.999, 60, 0.05)
    assert single > binom.ppf(0.999, 60, 0.05)


@pytest.mark.slow
def test_subgroups_count_in_the_family_and_not_in_the_correction_of_lenses():
    preds = simulated(wrong=0.7)
    document = audit(preds, crossings=True, resamples=199).to_dict()
    family, lens = document["tests"]
    assert family["lens"] == "family"
    joint = min(group["joint"] for group in document["groups"])
    either = min(joint / GROUP_WEIGHT, lens["pvalue"] / (1 - GROUP_WEIGHT)) / (1 - RECALIBRATION_WEIGHT)
    assert document["verdict"]["pvalue"] == family["pvalue"] == pytest.approx(either, rel=1e-12)
    assert (family["pvalue"] <= 0.05) == (document["verdict"]["rejected"] is True)
    assert family["parts"] == {}
    assert lens["pvalue"] == to.audit(to.Predictions(preds.y, preds.p), resamples=199).to_dict()["tests"][1]["pvalue"]


# What cannot be seen


def test_a_group_of_one_row_is_there_without_interval_and_undecided():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.2, 0.8, 301)
    site = np.array(["many"] * 300 + ["one"])
    made = audit(to.Predictions((rng.random(301) < p).astype(int), p, group={"site": site}), resamples=99)
    document = made.to_dict()
    one = document["groups"][1]
    assert (one["n"], one["interval"], one["status"]) == (1, None, "undecided")
    assert "TN150" in codes(document)
    assert "2 undecided" in {fact.label: fact.remark for fact in summary_lines(typed(document))}["Miscalibrated groups"]
    lines = [line for line in str(made).splitlines() if line.strip().startswith("site=one")]  # of a table in two blocks
    assert lines[0].split()[1] == "1"
    assert any(line.endswith("undecided") for line in lines)


@pytest.mark.slow
def test_small_groups_are_undecided_and_large_ones_within():
    rng = np.random.default_rng(4)
    p = rng.uniform(0.05, 0.95, 6000)
    site = np.where(np.arange(6000) < 40, "few", "many")
    preds = to.Predictions((rng.random(6000) < p).astype(int), p, group={"site": site})
    status = {group["value"]: group["status"] for group in audit(preds, resamples=99).to_dict()["groups"]}
    assert status == {"few": "undecided", "many": "within"}
    strict = audit(preds, resamples=99, min_effect=0.001).to_dict()
    assert {group["status"] for group in strict["groups"]} == {"undecided"}


@pytest.mark.slow
def test_a_tally_keeps_its_groups_without_gaps_and_says_so():
    preds = simulated(wrong=0.7)
    exact, tallied = audit(preds, resamples=199).to_dict(), audit(to.tally(preds), resamples=199).to_dict()
    assert [group.keys() for group in tallied["groups"]] == [group.keys() for group in exact["groups"]]
    assert tallied["among_groups"].keys() == exact["among_groups"].keys()
    assert [group["label"] for group in tallied["groups"]] == [group["label"] for group in exact["groups"]]
    assert {group["min_detectable"] for group in tallied["groups"]} == {None}
    for name in ("mean_prob", "event_rate"):
        assert [group[name] for group in tallied["groups"]] == pytest.approx([group[name] for group in exact["groups"]])
    assert (tallied["among_groups"]["widest"], tallied["among_groups"]["multicalibration"]) == ([], None)
    assert tallied["among_groups"]["correction"] == "Holm"
    assert "TN166" in codes(tallied)
    assert_valid(tallied, "audit")


def test_crossings_of_a_tally_or_of_one_column_are_refused():
    preds = simulated()
    with pytest.raises(to.InputError, match="TO323"):
        audit(to.tally(preds), crossings=True)
    with pytest.raises(to.InputError, match="TO203"):
        audit(preds, crossings=3)
    with pytest.raises(to.InputError, match="TO203"):
        audit(to.Predictions(preds.y, preds.p), crossings=True)
    with pytest.raises(to.InputError, match="TO203"):
        audit(preds, min_effect=-1)


def test_labels_that_do_not_exclude_each_other_are_corrected_by_holm():
    rng = np.random.default_rng(5)
    P = rng.uniform(0.1, 0.9, (200, 3))
    preds = to.Predictions.from_multilabel((rng.random((200, 3)) < P).astype(int), P, group={"site": ["a", "b"] * 100})
    document = audit(preds, resamples=99).to_dict()
    assert document["among_groups"]["correction"] == "Holm"
    assert "TN165" in codes(document)
    assert_valid(document, "audit")


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", [{"cluster": np.arange(600) // 3}, {"weight": np.arange(600) % 3}], ids=["cluster", "weight"]
)
def test_clusters_and_weights_keep_the_schema(extra):
    document = assert_valid(audit(simulated(**extra), crossings=True, resamples=99).to_dict(), "audit")
    assert all(group["pvalue"] <= group["joint"] for group in document["groups"])


# Showing


@pytest.mark.slow
def test_text_page_and_json_show_the_same_groups(crossed):
    document, text = crossed.to_dict(), str(crossed)
    html = render_html(document).replace("\u00a0", " ")
    for group in document["groups"]:
        assert group["label"] in text
        assert group["label"] in html
    for phrase in ("widest gap of a × b", "multicalibration error"):
        assert phrase in text
        assert phrase in html
    json.dumps(document, allow_nan=False)
    assert_valid(document, "audit")


@pytest.mark.slow
def test_the_worst_group_is_the_one_with_the_strongest_evidence(crossed):
    assert typed(crossed.to_dict()).worst_group.label == "a=1, b=1"
    assert (
        "worst: a=1, b=1"
        in {fact.label: fact.remark for fact in summary_lines(typed(crossed.to_dict()))}["Miscalibrated groups"]
    )
    assert crossed.to_dict()["among_groups"]["worst"] == "a=1, b=1"
    assert typed(crossed.to_dict() | {"groups": []}).worst_group is None


def test_every_line_that_names_a_worst_group_names_the_same_one(crossed):
    document = crossed.to_dict()
    assert document["among_groups"]["worst"] == "a=1, b=1"
    assert "worst group: a=1, b=1 " in crossed.verdict["details"]
    assert re.search(r"Worst group +ECE 0\.\d+ \(a=1, b=1", crossed.brief())
    # The largest cumulative error is another error, and its line says so.
    assert "worst" not in group_tables.group_gap_table(typed(document)).rows[-1][1]


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_an_audit_of_hard_labels_with_groups_has_text_and_page(kind):
    # The standard error of a group is 0, so its multicalibration error is infinite, which is null in the JSON.
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 3, 60), rng.integers(0, 2 if kind == "binary" else 3, 60)
    P = rng.permutation(y).astype(float) if kind == "binary" else np.eye(3)[rng.permutation(y)]
    made = audit(to.Predictions(y, P, group={"g": group}), resamples=99)
    assert made.to_dict()["among_groups"]["multicalibration"]["sigma"] is None
    assert "– standard errors" in " ".join(str(made).split())
    assert "– standard errors" in made.to_html().replace("\u00a0", " ")
    assert made.brief()
    assert made._repr_html_()


def test_long_names_of_crossings_stay_whole_in_the_table(crossed):
    document = crossed.to_dict()
    document["groups"][0]["label"] = "sex=Female, race=Amer-Indian-Eskimo"
    assert "sex=Female, race=Amer-Indian-Eskimo" in report.render_text(document)


def test_without_groups_there_is_no_table_of_them():
    preds = simulated()
    document = audit(to.Predictions(preds.y, preds.p), resamples=99).to_dict()
    assert (document["groups"], document["among_groups"]) == ([], None)
    assert group_tables.group_table(typed(document)).rows == group_tables.group_gap_table(typed(document)).rows == ()


@pytest.mark.slow
def test_the_first_words_name_the_group_that_is_off_and_what_it_says() -> None:
    rng = np.random.default_rng(1)
    x, ward = rng.normal(0, 1.2, 1500), np.array(["A", "B", "C"])[rng.integers(0, 3, 1500)]
    p = 1 / (1 + np.exp(-x))
    y = rng.random(1500) < np.where(ward == "C", 1 / (1 + np.exp(0.9 - x)), p)
    report = audit(to.Predictions(y.astype(int), p, group={"ward": ward}), resamples=199)
    assert re.search(
        r"worst group: ward=C \(mean predicted 4\d %, observed 3\d %, ECE 0\.\d+\)\.", report.verdict["details"]
    )


def _confident_answers(excess: dict[str, float], n: int = 3000) -> to.Predictions:
    """Answers about five subjects whose confidence is too high by `excess`, 0 where a subject is not named."""
    rng = np.random.default_rng(0)
    subject = np.array(["physics", "law", "art", "biology", "math"])[np.arange(n) % 5]
    p = rng.uniform(0.5, 1, n)
    correct = rng.random(n) < p - np.array([excess.get(name, 0.0) for name in subject])
    return to.Predictions.from_confidence(p, correct, group={"subject": subject})


@pytest.mark.slow
def test_no_worst_group_is_named_if_the_errors_of_the_groups_do_not_differ_significantly() -> None:
    report = audit(_confident_answers(dict.fromkeys(("physics", "law", "art", "biology", "math"), 0.2)), resamples=99)
    document = report.to_dict()
    assert [gap["settled"] for gap in document["among_groups"]["widest"]] == [False]
    sentence = report.verdict["details"]
    assert "; all 5 groups are miscalibrated, and their errors do not differ significantly." in sentence
    assert "orst group" not in sentence
    assert "subject=" not in sentence
    remark = {line.label: line.remark for line in summary_lines(typed(document))}["Miscalibrated groups"]
    assert remark == "errors do not differ significantly between groups; none undecided"


@pytest.mark.slow
def test_the_named_worst_group_is_one_whose_error_is_significantly_larger() -> None:
    report = audit(_confident_answers({"law": 0.35, "art": 0.2}), resamples=199)
    assert "worst group: subject=law (" in report.verdict["details"]


def test_without_gaps_several_miscalibrated_groups_are_only_counted() -> None:
    preds = _confident_answers({"law": 0.35, "art": 0.2})
    report = audit(to.tally(preds), resamples=999)
    assert "2 of 5 groups are miscalibrated." in report.verdict["details"]
    assert "differ" not in report.verdict["details"]


def test_the_only_miscalibrated_group_is_named_without_any_gap() -> None:
    audit = example()
    audit["groups"][0]["status"], audit["among_groups"]["widest"] = "within", []
    assert typed(audit).established_worst_group.label == "site=south"


@pytest.mark.slow
def test_numbers_of_the_multicalibration_error_read_as_those_of_the_groups() -> None:
    preds = _confident_answers({"law": 0.35})
    document = audit(preds, resamples=199).to_dict()
    text = dict(group_tables.group_gap_table(typed(document)).rows)["multicalibration error"]
    (line,) = [
        line for line in str(to.by_group(preds, resamples=199)).splitlines() if line.startswith("multicalibration")
    ]
    sigma = document["among_groups"]["multicalibration"]["sigma"]
    assert "p ≤ 0.005;" in text
    assert " p ≤ 0.005 " in line
    assert text.endswith(f"{sigma:.3g} standard errors")
    assert line.endswith(f"{sigma:.3g} standard errors")
