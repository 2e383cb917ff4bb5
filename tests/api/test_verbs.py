"""The façade: one call, defaults that are said, and errors that name the near ones."""

import json
import re

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds import InputError, Predictions
from trueodds.binning.equal_mass import EqualMass
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError


def three(n=400, seed=0, **extra):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = (rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, 2)
    return to.Predictions(y, P, **extra)


def binary500():
    rows = reference.frame("estimators/c_binary500.csv")
    return to.Predictions(rows["y"].astype(int), rows["p"])


def test_an_error_is_never_shown_bare():
    estimate = to.measure(three(), "ece")
    assert estimate.interval.low <= estimate.value <= estimate.interval.high
    assert estimate.noise_floor > 0
    assert estimate.n == 400
    assert "15 uniform bins" in str(estimate)
    assert "noise floor" in str(estimate)


def test_the_bare_number_is_for_inner_loops():
    estimate = to.measure(three(), "ece", interval=None)
    assert (estimate.interval, estimate.noise_floor) == (None, None)
    assert estimate.value == to.measure(three(), "ece").value


def test_reference_value_through_the_front_door():
    assert to.measure(binary500(), "ece", bins=10).value == pytest.approx(0.08715529631393511, rel=1e-12)


def test_the_front_door_bootstrap_is_the_reference_bootstrap():
    estimate = to.measure(binary500(), "ece", bins=10, interval="bca", resamples=400)
    known = reference.estimators()["c.bootstrap95.ece_ew10"]["value"]["bca"]
    np.testing.assert_allclose([estimate.interval.low, estimate.interval.high], known, rtol=1e-10)


def test_default_lenses():
    assert to.measure(three(), "ece", interval=None).lens == "confidence"
    assert to.measure(three(), "brier", interval=None).lens == "canonical"
    assert to.measure(binary500(), "ece", interval=None).lens == "positive"


def test_members_may_be_given_as_instances():
    estimate = to.measure(three(), BinnedError(EqualMass(20)), interval=None)
    assert estimate.value == to.measure(three(), "ece", partition="equal-mass", bins=20, interval=None).value


def test_the_same_call_gives_the_same_number():
    assert to.measure(three(), "ece").to_dict() == to.measure(three(), "ece").to_dict()
    assert to.test(three(), resamples=99).to_dict() == to.test(three(), resamples=99).to_dict()


def test_settings_are_read_back_from_what_ran():
    settings = to.measure(three(), "ece", lens="classwise", bins=7, aggregate="max", rng=5, resamples=50).settings
    assert (settings["partition"], settings["aggregate"], settings["seed"], settings["resamples"]) == (
        "uniform 7",
        "max",
        5,
        50,
    )


def test_parts_tell_the_classes():
    estimate = to.measure(three(), "ece", lens="classwise")
    assert list(estimate.parts) == ["class:0", "class:1", "class:2"]
    assert estimate.value == pytest.approx(np.mean(list(estimate.parts.values())))


def test_json_is_strict():
    preds = to.Predictions([0, 1, 1], [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    estimate = to.measure(preds, "log_loss")
    assert estimate.value == np.inf
    document = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert document["value"] is None
    assert "TN104" in [note["code"] for note in document["notes"]]


def test_frequency_weights_are_rows():
    rng = np.random.default_rng(0)
    p, times = rng.random(120), rng.integers(1, 4, 120)
    y = (rng.random(120) < p).astype(int)
    weighted = to.Predictions(y, p, weight=times)
    rows = to.Predictions(np.repeat(y, times), np.repeat(p, times))
    a = to.measure(weighted, "ece", weight_kind="frequency")
    b = to.measure(rows, "ece")
    assert (a.value, a.interval, a.noise_floor, a.n) == (b.value, b.interval, b.noise_floor, b.n)
    assert to.measure(weighted, "ece").interval != b.interval  # importance weights: fewer rows, less sure


def test_the_debiased_value_stands_beside_the_plug_in():
    near, miscalibrated = three(), to.Predictions([0] * 300, np.tile([0.1, 0.9], (300, 1)))
    assert to.measure(near, "ece").debiased is not None
    assert to.measure(miscalibrated, "ece").debiased is None  # clear of its floor: nothing to take off
    assert to.measure(binary500(), "rmsce").debiased < to.measure(binary500(), "rmsce").value


def test_a_tally_answers_like_the_rows():
    preds = three(5000)
    exact, tallied = to.measure(preds, "ece"), to.measure(preds, "ece", mode="tally")
    assert tallied.value == pytest.approx(exact.value, rel=1e-12)
    assert tallied.noise_floor == pytest.approx(exact.noise_floor, rel=0.1)
    assert tallied.interval.high == pytest.approx(exact.interval.high, rel=0.15)
    assert to.measure(preds, "brier", mode="tally").value == pytest.approx(to.measure(preds, "brier").value, rel=1e-12)
    assert to.measure(preds, "log_loss", mode="tally").value == pytest.approx(
        to.measure(preds, "log_loss").value, rel=1e-12
    )


@pytest.mark.slow
def test_a_tally_keeps_the_joint_law_of_the_classes():
    # independent draws per class would give size 12 % at K = 2 and 6-7 % above; with the null covariance the
    # rejections at 5 % over 120 data sets are Binomial(120, .05): 0..15 with 99.9 %
    rejections = sum(
        to.test(three(300, seed), lens="classwise", mode="tally", resamples=99).pvalue <= 0.05 for seed in range(120)
    )
    assert rejections <= 15


def test_an_aggregate_over_classes_from_a_tally_says_why_it_has_no_interval():
    estimate = to.measure(three(), "ece", lens="classwise", mode="tally")
    assert estimate.interval is None
    assert "TN402" in [note.code for note in estimate.notes]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda p: to.measure(p, "eec"), "TO201"),
        (lambda p: to.measure(p, "ece", bin=10), "TO202"),
        (lambda p: to.measure(p, BinnedError(), bins=10), "TO202"),
        (lambda p: to.measure(p, "ece", bins=0), "TO203"),
        (lambda p: to.measure(p, "ece", lens="confidance"), "TO204"),
        (lambda p: to.measure(p, "ece", lens="canonical", partition="equal-mass"), "TO205"),
        (lambda p: to.measure(p, "ece", interval="boot"), "TO203"),
        (lambda p: to.measure(p, "ece", aggregate="median"), "TO203"),
        (lambda p: to.measure(p, "ece", rng=-1), "TO203"),
        (lambda p: to.measure(p, "ece", mode="fast"), "TO203"),
        (lambda p: to.measure(p, "ece", weight_kind="counts"), "TO203"),
        (lambda p: to.measure(p, "ece", mode="tally", closed="left"), "TO406"),
        (lambda p: to.measure(p, "log_loss", lens="confidence", mode="tally"), "TO403"),
        (lambda p: to.test(p, "consistancy"), "TO201"),
        (lambda p: to.test(p, "consistency", redraw="both", mode="tally"), "TO205"),
        (lambda p: to.fit(p, "tempature"), "TO201"),
        (lambda p: to.fit(to.tally(p), "temperature"), "TO403"),
        (lambda p: to.draw(p, "reliabilty"), "TO201"),
        (lambda p: to.audit(p, alpha=5), "TO203"),
        (lambda p: to.test(p, lens=[]), "TO204"),
        (lambda p: to.test(p, lens=["confidence", "confidence"]), "TO204"),
        (lambda p: to.test(p, "consistency", aggregate="median"), "TO203"),
        (lambda p: to.measure(to.tally(p), "ece", weight_kind="frequency"), "TO403"),
        (lambda p: to.measure(to.tally(p), "ece", resample="rows"), "TO205"),
    ],
)
def test_bad_settings_have_a_code_and_a_fix(call, code):
    with pytest.raises(to.InputError) as caught:
        call(three(60))
    assert caught.value.code == code
    assert caught.value.fix


def test_a_setting_of_another_test_names_that_test():
    with pytest.raises(to.InputError, match=r"TO202.*statistic is a setting of the test 'consistency'"):
        to.test(three(60), statistic="ace")


def test_a_misspelt_name_lists_the_near_ones():
    with pytest.raises(to.InputError, match="ece"):
        to.measure(three(60), "eec")
    with pytest.raises(to.InputError, match="bins"):
        to.measure(three(60), "ece", bin=10)


def test_every_public_name_is_there():
    for name in to.__all__:
        assert getattr(to, name) is not None
    with pytest.raises(AttributeError):
        to.rank  # noqa: B018


def test_settings_of_the_rows_are_refused_with_where_they_belong() -> None:
    preds = Predictions([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4])
    for name, hint in (("weight", "Predictions"), ("cluster", "cluster="), ("seed", "Did you mean rng?")):
        with pytest.raises(InputError, match=re.escape(hint)) as refusal:
            to.measure(preds, "ece", **{name: 1})
        assert refusal.value.code == "TO202"


def test_a_name_in_capitals_is_recognized() -> None:
    with pytest.raises(InputError, match=r"Did you mean ece\?"):
        to.measure(Predictions([0, 1], [0.2, 0.7]), "ECE")


@pytest.mark.slow
def test_every_estimator_runs_with_its_defaults_and_a_seed() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1], 60)
    preds = Predictions(rng.multinomial(5, P), P)
    for name in ESTIMATORS.names():
        assert to.measure(preds, name, interval=None, rng=3).settings["seed"] == 3


def test_few_resamples_are_noted() -> None:
    preds = Predictions([0, 1] * 20, [0.2, 0.7] * 20)
    small, many = (to.measure(preds, "ece", resamples=n) for n in (20, 200))
    assert "TN211" in {note.code for note in small.notes}
    assert "TN211" not in {note.code for note in many.notes}


def test_ratios_of_classes_make_no_mean() -> None:
    preds = Predictions([0, 1, 2], [[0.2, 0.3, 0.5]] * 3)
    with pytest.raises(InputError) as refusal:
        to.measure(preds, "o_e", lens="classwise")
    assert refusal.value.code == "TO205"
    assert to.measure(preds, "o_e", lens="class:1", interval=None).value == pytest.approx(1 / 0.9)


@pytest.mark.parametrize("name", ["debiased_l2", "ece_kde", "kde_mixnmatch", "ece_linear"])
def test_survey_weights_in_the_hundreds_are_no_rows_in_the_hundreds(name: str) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    plain = to.measure(Predictions(y, p), name, interval=None).value
    heavy = to.measure(Predictions(y, p, weight=np.full(500, 100)), name, interval=None).value
    assert heavy == pytest.approx(plain, rel=1e-9, abs=1e-12)
    frequent = Predictions(y, p, weight=np.full(500, 2))
    twice = Predictions(np.repeat(y, 2), np.repeat(p, 2))
    options = {"interval": None, "weight_kind": "frequency"}
    assert to.measure(frequent, name, **options).value == to.measure(twice, name, interval=None).value


def test_the_seed_of_a_call_deals_the_folds_whatever_its_type() -> None:
    preds = Predictions([0, 1] * 60, np.random.default_rng(0).random(120))
    one, other = (to.measure(preds, "cross_fitted", interval=None, rng=seed) for seed in (5, np.int64(5)))
    assert one.value == other.value
    assert one.settings["fold_seed"] == other.settings["fold_seed"] == 5
    drawn = to.measure(preds, "cross_fitted", interval=None, rng=np.random.default_rng(5))
    assert drawn.settings["fold_seed"] not in (0, 5)
    assert to.test(preds, "consistency", statistic="cross_fitted", rng=5, resamples=19).statistic == one.value


def test_folds_do_not_part_clusters() -> None:
    preds = Predictions([0, 1] * 10, [0.2, 0.7] * 10, cluster=np.arange(20) // 4)
    with pytest.raises(InputError) as refusal:
        to.measure(preds, "cross_fitted")
    assert refusal.value.code == "TO205"


def test_the_worst_class_has_the_floor_of_the_worst() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 100)
    preds = Predictions([rng.choice(4, p=row) for row in P], P)
    worst = to.measure(preds, "skce", lens="classwise", aggregate="max", resamples=100)
    assert worst.noise_floor > 0  # each class is 0 on average, the largest of four is not


def test_the_worst_agreement_is_the_least() -> None:
    votes = np.random.default_rng(0).multinomial(9, [0.2, 0.3, 0.5], 50)
    preds = Predictions(votes, np.random.default_rng(1).dirichlet(np.ones(3), 50))
    worst = to.measure(preds, "rankcs", lens="classwise", aggregate="max", interval=None)
    assert worst.value == min(worst.parts.values())


def test_a_root_mean_square_of_clusters_is_not_debiased_by_its_pairs() -> None:
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(40), 5)
    y = np.repeat(rng.random(40) < p[::5], 5).astype(int)
    estimate = to.measure(Predictions(y, p, cluster=np.arange(200) // 5), "rmsce", resamples=100)
    floored = max(0.0, estimate.value**2 - estimate.noise_floor**2) ** 0.5
    assert estimate.debiased is None or estimate.debiased == pytest.approx(floored)


def test_the_weights_of_linear_binning_are_its_own_setting():
    preds = Predictions([0, 1, 0, 1] * 10, [0.23, 0.71, 0.94, 0.37] * 10)
    plain, swapped = (
        to.measure(preds, "ece_linear", bins=5, weights=weights, interval=None) for weights in ("linear", "swapped")
    )
    assert abs(plain.value - swapped.value) > 0.01
    with pytest.raises(InputError) as refused:
        to.measure(preds, "ece", weights=[1] * 40)
    assert refused.value.code == "TO202"
