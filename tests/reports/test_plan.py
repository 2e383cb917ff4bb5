"""The audit: the sentence fits the data, the same facts everywhere, and nothing is claimed that was not shown."""

import json
import re

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, typed
from trueodds.reports.family_wise_test import GROUP_WEIGHT, RECALIBRATION_WEIGHT, smallest_group_alpha


def simulated(n=1500, k=4, temperature=1.0, seed=0, **extra):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    truth = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, k - 1)
    return to.Predictions.from_logits(y, z * temperature, **extra)


@pytest.fixture(scope="module")
def overconfident():
    return to.audit(simulated(temperature=2.0), resamples=199)


@pytest.fixture(scope="module")
def calibrated():
    return to.audit(simulated(), resamples=199)


def test_overconfidence_is_stated_tested_and_fixed(overconfident):
    verdict = overconfident.verdict
    assert verdict["state"] == "overconfident"
    assert verdict["rejected"]
    assert verdict["pvalue"] == verdict["min_pvalue"] == pytest.approx(1 / 200 / (1 - RECALIBRATION_WEIGHT))
    assert verdict["sentence"].startswith("Overconfident: predicts ")
    assert "Calibration rejected (family-wise p ≤ 0.0053)" in verdict["details"]
    assert "Recalibration confirmed by cross-fitting; valid only if" in verdict["details"]
    fix = overconfident.to_dict()["recalibration"]
    assert fix["chosen"] in ("temperature", "structured")
    assert float(fix["map_text"].removeprefix("T = ").split(",")[0]) == pytest.approx(2.0, abs=0.25)


@pytest.mark.slow
def test_a_calibrated_model_is_left_alone(calibrated):
    assert calibrated.verdict["state"] == "no evidence"
    assert "No recalibration improves the held-out log loss significantly." in calibrated.verdict["sentence"]
    assert "95 % confidence interval of the expected calibration error 0 to 0.0" in calibrated.verdict["details"]


@pytest.mark.slow
def test_underconfidence_has_its_own_word():
    assert to.audit(simulated(temperature=0.5), resamples=99).verdict["state"] == "underconfident"


def test_the_json_is_strict_and_has_every_part(overconfident):
    document = json.loads(json.dumps(overconfident.to_dict(), allow_nan=False))
    assert document["schema"] == "trueodds.audit/1"
    parts = {"data", "verdict", "measures", "tests", "recalibration", "groups", "diagrams", "settings", "notes"}
    assert parts <= set(document)
    assert [(m["estimator"], m["lens"]) for m in document["measures"]] == [
        ("brier", "canonical"),
        ("log_loss", "canonical"),
        ("ece", "confidence"),
        ("ece", "classwise"),
        ("ece", "canonical"),
    ]
    assert [t["lens"] for t in document["tests"]] == ["family", "confidence", "classwise", "canonical"]


def test_text_page_and_json_tell_the_same_facts(overconfident):
    sentence = overconfident.verdict["sentence"]
    assert sentence.split(".")[0] in str(overconfident).replace("\n", " ")
    page = overconfident.to_html().replace("\xa0", " ")
    assert sentence.split(".")[0] in page
    for test in overconfident.to_dict()["tests"][1:]:
        assert test["lens"] in page
        assert test["lens"] in str(overconfident)


def test_the_audit_measures_what_measure_measures(overconfident):
    preds = simulated(temperature=2.0)
    measures = {(m["estimator"], m["lens"]): m for m in overconfident.to_dict()["measures"]}
    for (name, lens), measured in measures.items():
        assert measured["value"] == to.measure(preds, name, lens=lens, interval=None).value


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_the_family_holds_its_level():
    # 60 calibrated data sets at 5 %: Binomial(60, .05) stays within 0..10 with 99.9 %
    rejected = 0
    for seed in range(60):
        report = to.audit(simulated(120, 3, seed=seed), resamples=39)
        rejected += report.verdict["rejected"]
    assert rejected <= 10


@pytest.mark.slow
def test_groups_are_audited_and_belong_to_the_family():
    rng = np.random.default_rng(1)
    preds = simulated(2000, 3, temperature=1.0, seed=1)
    site = rng.choice(["A", "B"], 2000)
    y = np.where((site == "B") & (rng.random(2000) < 0.5), rng.integers(0, 3, 2000), preds.y)
    report = to.audit(to.Predictions(y, preds.p, group={"site": site}), resamples=199)
    groups = {group["value"]: group for group in report.to_dict()["groups"]}
    assert groups["A"]["joint"] > 0.05
    assert groups["B"]["joint"] <= 0.05
    assert report.verdict["rejected"]
    alone = to.Predictions(y, preds.p)[site == "B"]
    assert groups["B"]["error"] == to.measure(alone, "ece", interval=None).value


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_votes_clusters_weights_and_other_kinds_are_audited():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3), 200)
    votes = np.array([rng.multinomial(20, p) for p in P])
    y = votes.argmax(axis=1)
    kinds = {
        "votes": to.Predictions(votes, P),
        "weighted": to.Predictions(y, P, weight=rng.random(200)),
        "clustered": to.Predictions(y, P, cluster=np.arange(200) // 4),
        "confidence": to.Predictions.from_confidence(P.max(axis=1), y == P.argmax(axis=1)),
        "multilabel": to.Predictions.from_multilabel((rng.random((200, 3)) < P).astype(int), P),
        "binary": to.Predictions((rng.random(200) < P[:, 0]).astype(int), P[:, 0]),
    }
    for name, preds in kinds.items():
        report = to.audit(preds, resamples=39)
        assert report.verdict["sentence"], name
        json.dumps(report.to_dict(), allow_nan=False)
        assert str(report)
        assert "<html" in report.to_html()


@pytest.mark.slow
def test_a_tally_is_audited_without_a_fix_and_says_so():
    preds = simulated(4000, temperature=2.0, group={"site": np.repeat(["A", "B"], 2000)})
    report = to.audit(to.tally(preds), resamples=199)
    assert report.verdict["state"] == "overconfident"
    assert report.to_dict()["recalibration"] is None
    assert "TN207" in [note["code"] for note in report.to_dict()["notes"]]
    exact = to.audit(preds, resamples=199).to_dict()
    values = {(m["estimator"], m["lens"]): m["value"] for m in report.to_dict()["measures"]}
    for m in exact["measures"]:
        if (m["estimator"], m["lens"]) in values:
            assert values[m["estimator"], m["lens"]] == pytest.approx(m["value"], rel=1e-10)
    assert [g["error"] for g in report.to_dict()["groups"]] == pytest.approx(
        [g["error"] for g in exact["groups"]], rel=1e-10
    )


def test_impossible_outcomes_are_evidence_of_their_own():
    preds = to.Predictions([1, 0, 1, 0] * 20, [[1.0, 0.0], [0.7, 0.3]] * 40)
    document = to.audit(preds, resamples=39).to_dict()
    assert document["data"]["true_class_zeros"] == 40
    assert document["measures"][1]["value"] is None  # infinite log loss
    assert document["verdict"]["rejected"]
    assert "40 outcomes occurred although the predicted probability was 0." in document["verdict"]["details"]


@pytest.mark.slow
def test_one_impossible_outcome_is_enough_whatever_the_test_says():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 500)
    y = (rng.random(500) < p).astype(int)
    p[0], y[0] = 0.0, 1
    verdict = to.audit(to.Predictions(y, p), resamples=99).verdict
    assert (verdict["state"], verdict["rejected"]) == ("miscalibrated", True)
    assert (
        "1 outcome occurred although the predicted probability was 0; apart from that, calibration is not rejected"
        in verdict["details"]
    )


@pytest.mark.slow
def test_the_sentence_names_the_group_that_is_off():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, 4000)
    site = np.where(np.arange(4000) < 600, "A", "B")
    y = (rng.random(4000) < np.where(site == "A", 0.5 + 0.4 * (p < 0.5) - 0.2, p)).astype(int)
    document = to.audit(to.Predictions(y, p, group={"site": site}), resamples=199).to_dict()
    assert document["verdict"]["rejected"]
    worst = min(document["groups"], key=lambda g: g["joint"])
    assert worst["value"] == "A"
    assert worst["mean_prob"] == pytest.approx(p[site == "A"].mean())
    assert worst["event_rate"] == pytest.approx(y[site == "A"].mean())


@pytest.mark.slow
def test_calibration_on_average_is_stated_before_where_it_fails():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.2, 0.8, 3000)  # what is wrong is even around ½, so that level and slope are right
    y = (rng.random(3000) < np.clip(p + 0.15 * np.cos(4 * np.pi * p), 0, 1)).astype(int)
    document = to.audit(to.Predictions(y, p), resamples=199).to_dict()
    assert document["verdict"]["state"] == "miscalibrated"
    assert re.match(
        r"Miscalibrated: mean predicted \d+(\.\d+)? %, observed \d+(\.\d+)? %, expected calibration error 0\.\d+\.",
        document["verdict"]["sentence"],
    )
    example = r"\d+ rows predicted at \d+(\.\d+)? % on average have an event rate of \d+(\.\d+)? %"
    assert re.search(example, document["verdict"]["details"])


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_two_classes_are_too_extreme_though_they_are_a_little_too_low_on_average():
    # Twice as far on the scale of log odds, and a little too low on average: what is wrong is that it is too extreme.
    rng = np.random.default_rng(5)
    odds = rng.normal(0.7, 1.0, 20_000)
    y = (rng.random(len(odds)) < 1 / (1 + np.exp(-odds))).astype(int)
    p = 1 / (1 + np.exp(-(2 * odds - 0.55)))
    report = to.audit(to.Predictions(y, p), resamples=99)
    assert (report.verdict["state"], report.verdict["spread"]) == ("too extreme", "too extreme")
    assert re.match(
        r"Too extreme \(slope 0\.\d\d, 95 % CI 0\.\d\d to 0\.5\d\): mean predicted 63 %, observed 65 %\.",
        report.verdict["sentence"],
    )
    higher = to.audit(to.Predictions(y, 1 / (1 + np.exp(-(odds + 0.5)))), resamples=99)
    assert higher.verdict["state"] == "too high"


@pytest.mark.parametrize(
    ("level", "error", "debiased", "state"),
    [
        (-0.034, 0.1, None, "overconfident"),
        (-0.033, 0.1, None, "miscalibrated"),
        (0.034, 0.1, None, "underconfident"),
        (-0.034, 0.2, 0.1, "overconfident"),
        (-0.033, 0.09, 0.1, "miscalibrated"),
    ],
)
def test_a_level_is_stated_from_a_third_of_the_error_on(level, error, debiased, state):
    facts = example() | {"standard_measures": []}
    facts["data"] |= {"true_class_zeros": 0}
    facts["verdict"] |= {"calibration_in_the_large": level, "calibration_in_the_large_z": 9.0}
    facts["measures"][2] |= {"value": error, "debiased": debiased}
    assert typed(facts).state == state


def test_too_few_clusters_are_reported_with_their_number():
    p = np.tile([0.2, 0.8], 20)
    document = to.audit(to.Predictions([0, 1] * 20, p, cluster=np.arange(40) // 10), resamples=99).to_dict()
    assert document["verdict"]["state"] == "not tested"
    assert "Too few clusters for a test: with 4 clusters" in document["verdict"]["details"]


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_votes_agree_and_are_not_right():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.full(3, 0.3), 400)
    votes = rng.multinomial(8, 0.5 * P + 0.5 / 3)
    sentence = to.audit(to.Predictions(votes, P), resamples=99).verdict["sentence"]
    assert re.match(r"Overconfident: predicts \d+ % on average, \d+ % of the votes agree\.", sentence)
    two = to.audit(to.Predictions(votes[:, :2] + [0, 1], P[:, :1] * [[0, 1]] + [[1, 0]] * (1 - P[:, :1])), resamples=99)
    assert "lower shares of votes" in two.verdict["sentence"]


def test_one_row_and_one_class_are_answered_too():
    for preds in (
        to.Predictions([1], [0.9]),
        to.Predictions([1] * 30, [0.9] * 30),
        to.Predictions([0] * 5, np.tile([1.0, 0, 0], (5, 1))),
    ):
        report = to.audit(preds, resamples=39)
        json.dumps(report.to_dict(), allow_nan=False)
        assert str(report)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_audit():
    preds = simulated(200)
    assert to.audit(preds, resamples=39).to_dict() == to.audit(preds, resamples=39).to_dict()


@pytest.mark.slow
def test_progress_rises_from_zero_to_one():
    steps = []
    to.audit(simulated(100), resamples=39, progress=lambda share, what: steps.append((share, what)))
    shares = [s for s, _ in steps]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def binary(p, y, **extra):
    return to.audit(to.Predictions(np.asarray(y).astype(int), np.asarray(p), **extra), resamples=99)


def test_a_risk_model_that_predicts_too_high_is_called_too_high():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.2, 0.9, 2000)
    document = binary(p, rng.random(2000) < 0.8 * p).to_dict()
    assert document["verdict"]["state"] == "too high"
    assert document["verdict"]["sentence"].startswith("Too high (O:E 0.81, 95 % CI ")
    assert document["verdict"]["calibration_in_the_large"] == pytest.approx(
        document["data"]["event_rate"] - document["data"]["mean_prediction"]
    )


def test_a_test_that_cannot_reject_is_no_pass():
    rng = np.random.default_rng(6)
    verdict = binary([0.8] * 60, [False] * 40 + [True] * 20, cluster=np.arange(60) // 20).to_dict()["verdict"]
    assert (verdict["state"], verdict["rejected"]) == ("not tested", None)
    with pytest.raises(to.InputError, match="TO203"):
        to.audit(to.Predictions(rng.integers(0, 2, 50), rng.random(50)), resamples=10)


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_many_labels_and_groups_can_still_be_named():
    # 60 labels, each off by 50 points: with 999 redraws Holm could not reject, so more are made; groups need no more
    rng = np.random.default_rng(7)
    P = np.full((200, 60), 0.75)
    document = to.audit(to.Predictions.from_multilabel((rng.random((200, 60)) < 0.25).astype(int), P)).to_dict()
    assert document["verdict"]["rejected"]
    assert document["settings"]["resamples"] > 999
    site = np.arange(3000) % 60
    p = rng.random(3000)
    y = rng.random(3000) < np.where(site == 7, 1 - p, p)
    groups = to.audit(to.Predictions(y.astype(int), p, group={"site": site})).to_dict()["groups"]
    assert "7" in [group["value"] for group in groups if group["status"] == "miscalibrated"]


def test_rows_of_weight_zero_decide_nothing():
    rng = np.random.default_rng(8)
    p = rng.uniform(0.05, 0.95, 300)
    y = rng.random(300) < p
    p[0], y[0] = 0.0, True
    w = np.ones(300)
    w[0] = 0
    exact = binary(p, y, weight=w).to_dict()
    assert exact["data"]["true_class_zeros"] == exact["data"]["zeros"] == 0
    tallied = to.audit(to.tally(to.Predictions(y.astype(int), p, weight=w)), resamples=99).to_dict()
    assert tallied["verdict"]["rejected"] == exact["verdict"]["rejected"]


def test_votes_through_a_tally_are_tested_like_votes():
    rng = np.random.default_rng(9)
    p = rng.uniform(0.1, 0.9, 2000)
    yes = rng.binomial(10, np.clip(p + 0.06, 0, 1))
    preds = to.Predictions(np.stack([10 - yes, yes], axis=1), p)
    assert to.test(to.tally(preds), resamples=199).pvalue <= 0.05
    assert to.measure(preds, "ece", mode="tally").noise_floor == pytest.approx(
        to.measure(preds, "ece").noise_floor, rel=0.15
    )


def test_zeros_count_the_same_in_every_shape():
    one = to.Predictions([0, 1, 1], [1.0, 0.4, 0.6])
    two = to.Predictions([0, 1, 1], [[0.0, 1.0], [0.6, 0.4], [0.4, 0.6]])
    data = [to.audit(preds, resamples=39).to_dict()["data"] for preds in (one, two)]
    assert [(d["zeros"], d["true_class_zeros"]) for d in data] == [(1, 1), (1, 1)]


def test_a_weighted_tally_with_a_grid_is_audited_without_the_whole_vector():
    preds = simulated(300, 3, weight=np.random.default_rng(10).random(300))
    document = to.audit(to.tally(preds, grid=5), resamples=39).to_dict()
    assert [t["lens"] for t in document["tests"]] == ["family", "confidence", "classwise"]
    assert "TN210" in [note["code"] for note in document["notes"]]


@pytest.mark.slow
@pytest.mark.usefixtures("reduced_candidates")
def test_groups_of_voted_rows_are_tested_by_the_null_of_the_family():
    rng = np.random.default_rng(11)
    p = rng.uniform(0.2, 0.8, 400)
    yes = rng.binomial(10, p)
    votes = np.stack([10 - yes, yes], axis=1)
    document = to.audit(to.Predictions(votes, p, group={"site": ["A"] * 400}), resamples=99).to_dict()
    (group,) = document["groups"]
    # A group of all rows is the claim of all rows, judged by flipping the same signs.
    assert group["pvalue"] == group["joint"]
    assert "signs flipped" in document["tests"][0]["null"]


def test_certainty_that_is_wrong_has_a_direction():
    # every confidence is exactly 1 and half are wrong: no noise at all, and a gap of 50 points
    document = to.audit(to.Predictions([0, 1, 2] * 40, np.tile([1.0, 0.0, 0.0], (120, 1))), resamples=99).to_dict()
    assert document["verdict"]["state"] == "overconfident"
    json.dumps(document, allow_nan=False)


@pytest.mark.slow
def test_an_audit_says_itself_in_one_line_and_a_page_that_cannot_be_written_is_a_coded_error(calibrated, tmp_path):
    assert repr(calibrated).startswith("Audit('No evidence")
    assert [note.code for note in calibrated.notes][: len(calibrated.facts["notes"])] == [
        note["code"] for note in calibrated.to_dict()["notes"]
    ]
    with pytest.raises(to.InputError, match="TO703"):
        calibrated.to_html(tmp_path / "missing" / "a.html")


def test_a_vector_lens_of_a_tally_has_no_interval_and_says_why():
    estimate = to.measure(
        to.tally(simulated(300, 3), grid=5), "ece", lens="canonical", partition="simplex-grid", bins=5
    )
    assert estimate.interval is None
    assert "TN201" in [note.code for note in estimate.notes]


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_the_levels_of_lenses_groups_and_recalibration_add_up_to_alpha(alpha):
    of_groups, of_recalibration = smallest_group_alpha(alpha), alpha * RECALIBRATION_WEIGHT
    of_lenses = alpha * (1 - RECALIBRATION_WEIGHT) * (1 - GROUP_WEIGHT)
    assert 0 < of_groups < alpha
    assert of_lenses + of_groups + of_recalibration == pytest.approx(alpha, rel=1e-12)
