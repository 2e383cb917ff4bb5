"""Shifts of the log odds by group, shrunken toward the terms above them."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit

import trueodds as to
from tests.rates import rate_is_at_level
from trueodds.calibrators import GroupShift
from trueodds.calibrators._groups.group_repair import BinaryRows
from trueodds.calibrators._groups.rows_with_columns import find_levels
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.group_shift import fit_shifts, moment_variance
from trueodds.core.errors import InputError


def draw(n, n_groups, mean, tau, overall=0.0, seed=0):
    """Predictions in groups whose log odds are too low by an overall shift and by one per group."""
    rng = np.random.default_rng(seed)
    group, log_odds = rng.integers(0, n_groups, n), rng.normal(mean, 1, n)
    shift = overall + rng.normal(0, tau, n_groups)[group]
    y = (rng.random(n) < expit(log_odds + shift)).astype(int)
    return to.Predictions(y, expit(log_odds), group={"site": group})


def test_the_variance_of_shifts_is_that_of_dersimonian_and_laird_on_scores():
    # U = (6, −6), I = (4, 4): Σ U²/I = 18, G − 1 = 1, and the denominator is 8 − 32/8 = 4, so τ² = 17/4.
    assert moment_variance(np.array([6.0, -6.0]), np.array([4.0, 4.0])) == 4.25
    # With V = 2I, the expected sum is 2 · 2 · (1 − 1/2) = 2, so τ² = 16/4.
    assert moment_variance(np.array([6.0, -6.0]), np.array([4.0, 4.0]), np.array([8.0, 8.0])) == 4.0
    assert moment_variance(np.array([1.0, -1.0]), np.array([4.0, 4.0])) == 0.0  # less than chance
    assert moment_variance(np.array([6.0, 1.0]), np.array([4.0, 0.0])) == 0.0  # one level with information


def test_small_groups_without_events_do_not_hide_the_variance():
    # Of 1,000 groups of 20 rows, fitted shifts are infinite for the many without events, and their variance is 0.
    taus = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        group, log_odds = np.repeat(np.arange(1000), 20), rng.normal(-3, 1, 20_000)
        y = (rng.random(20_000) < expit(log_odds + rng.normal(0, 0.3, 1000)[group])).astype(float)
        rows = BinaryRows(log_odds, y, np.ones(20_000), None)
        taus.append(fit_shifts(rows, [find_levels([group])]).taus[0])
    # τ̂ had the standard deviation .049 over 20 sets: the mean of four is within 3.3 standard errors.
    assert np.mean(taus) == pytest.approx(0.3, abs=0.08)


def test_the_overall_shift_is_not_shrunken_and_each_group_solves_its_equation():
    preds = draw(2000, 5, -1, 0.5, overall=0.3)
    fitted = to.fit(preds, "group_shift", confirm=False).calibration_map
    log_odds, y, group = logit(preds.p), preds.y, preds.group["site"]
    assert expit(log_odds + fitted.overall).sum() == pytest.approx(y.sum(), abs=1e-6)
    factor = fitted.factors[0]
    for label, shift in zip(factor.labels, factor.shifts, strict=True):
        offset, own = log_odds[group == int(label[0])] + fitted.overall, y[group == int(label[0])]
        root = brentq(lambda d: (own - expit(offset + d)).sum() - d / factor.tau**2, -5, 5)  # noqa: B023
        assert shift == pytest.approx(root, abs=1e-8)


def test_equal_groups_have_no_terms():
    p, y = np.full(400, 0.5), np.tile([0, 1], 200)
    fitted = to.fit(to.Predictions(y, p, group={"g": np.repeat(["a", "b"], 200)}), "group_shift", confirm=False)
    assert fitted.calibration_map.factors[0].tau == 0
    assert fitted.predict_proba([0.3], group={"g": ["a"]})[0, 1] == pytest.approx(0.3)


def test_a_crossing_is_shrunken_toward_the_sum_of_its_columns():
    rng = np.random.default_rng(1)
    sex, site = rng.choice(["f", "m"], 6000), rng.choice(["n", "s"], 6000)
    log_odds = rng.normal(-1, 1, 6000)
    shift = np.where(sex == "f", 0.5, -0.5) + np.where(site == "n", 0.4, -0.4)  # additive
    preds = to.Predictions(rng.random(6000) < expit(log_odds + shift), expit(log_odds), group={"a": sex, "b": site})
    main, main_b, crossing = to.fit(preds, "group_shift", crossings=True, confirm=False).calibration_map.factors
    assert crossing.columns == ("a", "b")
    assert np.abs(crossing.shifts).max() < 0.1 < 0.3 < min(np.abs(main.shifts).min(), np.abs(main_b.shifts).min())


def test_new_groups_keep_the_overall_shift_and_the_terms_that_are_known():
    preds = draw(3000, 4, -1, 0.8, overall=0.4)
    site = preds.group["site"].astype(str)
    preds = to.Predictions(preds.y, preds.p, group={"site": site, "half": np.arange(3000) % 2})
    fitted = to.fit(preds, "group_shift", crossings=2, confirm=False)
    factors = {factor.columns: factor for factor in fitted.calibration_map.factors}
    known = dict(zip(factors["half",].labels, factors["half",].shifts, strict=True))
    q = fitted.predict_proba([0.3, 0.3], group={"site": ["new", "new"], "half": [0, 7]})[:, 1]
    assert logit(q[0]) == pytest.approx(logit(0.3) + fitted.m + known["0",])
    assert logit(q[1]) == pytest.approx(logit(0.3) + fitted.m)


def test_rows_with_unknown_groups_or_categories_have_a_note() -> None:
    """Of four rows, two have a new site; of these one, and another row, have an unknown color."""
    rng = np.random.default_rng(0)
    site, color = rng.choice(["a", "b"], 600), rng.choice(["red", "blue"], 600)
    y = rng.random(600) < np.where(color == "red", 0.8, 0.2)
    preds = to.Predictions(y, np.full(600, 0.5), group={"site": site})
    new = to.Predictions([0, 1, 0, 1], [0.5] * 4, group={"site": ["a", "b", "c", "d"]})
    shifted = to.fit(preds, "group_shift", confirm=False).recalibrate(new)
    assert [note.text[:11] for note in shifted.notes if note.code == "TN550"] == ["2 of 4 rows"]
    boosted = to.fit(preds, "multicalibrated", features={"color": color}, confirm=False)
    notes = boosted.recalibrate(new, features={"color": ["red", "green", "green", "red"]}).notes
    assert boosted.calibration_map.trees
    assert [note.text[:11] for note in notes if note.code == "TN550"] == ["3 of 4 rows"]
    known = to.fit(preds, "group_shift", confirm=False).recalibrate(preds)
    assert "TN550" not in [note.code for note in known.notes]


def test_the_order_of_rows_and_the_names_of_groups_change_nothing():
    preds = draw(1500, 6, -1, 0.5)
    order = np.random.default_rng(3).permutation(1500)
    names = np.array([f"site {i}" for i in range(6)])
    renamed = to.Predictions(preds.y[order], preds.p[order], group={"site": names[preds.group["site"][order]]})
    one, other = (to.fit(data, "group_shift", confirm=False) for data in (preds, renamed))
    q = one.predict_proba(preds)
    assert other.predict_proba(renamed) == pytest.approx(q[order], abs=1e-9)


def test_equal_weights_are_no_new_evidence():
    preds = draw(1500, 6, -1, 0.5)
    doubled = to.Predictions(preds.y, preds.p, weight=np.full(1500, 2.0), group=preds.group)
    fits = [to.fit(data, "group_shift", confirm=False).calibration_map for data in (preds, doubled)]
    assert fits[0].factors[0].shifts == pytest.approx(fits[1].factors[0].shifts, abs=1e-9)


def test_clusters_within_groups_are_not_taken_for_differences_of_groups():
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(120), 50)
    group, log_odds = cluster % 6, rng.normal(-1, 1, 6000)
    y = (rng.random(6000) < expit(log_odds + rng.normal(0, 0.8, 120)[cluster])).astype(int)
    taus = [
        to.fit(to.Predictions(y, expit(log_odds), group={"g": group}, cluster=c), "group_shift", confirm=False)
        .calibration_map.factors[0]
        .tau
        for c in (None, cluster)
    ]
    assert taus[1] < taus[0] / 2


def test_differences_are_confirmed_and_an_overall_error_alone_is_not():
    confirmed = to.fit(draw(3000, 10, -1, 0.6), "group_shift")
    assert confirmed.report.confirmed
    assert [note.code for note in confirmed.notes] == ["TN546", "TN547", "TN548"]
    worst = confirmed.report.worst_large
    assert abs(worst.after) < abs(worst.before)
    overall = to.fit(draw(3000, 10, -1, 0.0, overall=0.5), "group_shift")
    assert not overall.report.confirmed
    assert overall.calibration_map.factors == ()
    assert overall.predict_proba([0.5])[0, 1] == pytest.approx(expit(0.5), abs=0.03)  # which needs no group then


def test_the_errors_shown_are_those_of_one_split():
    preds = draw(2000, 4, -1, 0.8)
    errors = to.fit(preds, "group_shift").report.errors
    assert sum(error.n for error in errors) == 800  # 40 %, and not all rows
    shown = {error.group for error in errors}
    assert shown == {f"site={i}" for i in range(4)}


@pytest.mark.slow
def test_calibrated_groups_are_rarely_confirmed():
    fits = (to.fit(draw(1000, 10, -1, 0.0, seed=seed), "group_shift") for seed in range(200))
    assert rate_is_at_level((fitted.report.confirmed for fitted in fits), 0.05, excluded=0.12)


def test_a_saved_calibrator_finds_groups_by_name(tmp_path):
    preds = draw(2000, 4, -1, 0.8)
    fitted = to.fit(preds, "group_shift")
    fitted.save(tmp_path / "cal.json")
    loaded = to.load(tmp_path / "cal.json")
    assert (loaded.predict_proba(preds) == fitted.predict_proba(preds)).all()
    assert (loaded.recalibrate(preds).p == fitted.predict_proba(preds)).all()
    with pytest.raises(InputError, match=r"TO516.*site.*no site.*group=\{'site': …\}"):
        loaded.predict_proba([0.2])
    with pytest.raises(InputError, match=r"TO112.*shape \(1,\) for 2 rows"):
        loaded.predict_proba([0.2, 0.3], group={"site": [1]})


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": [["0"]]}, {"labels": "0"}, {"labels": [0, 1]}, {"labels": [["0", "1"], ["1", "1"]]},
        {"labels": [["0"], ["0"]]}, {"columns": [1]}, {"tau": -1}, {"shifts": [1e9, 0]},
    ],
)  # fmt: skip
def test_a_changed_file_is_refused(changes):
    document = to.fit(draw(400, 2, -1, 2.0), "group_shift", confirm=False).to_dict()
    document = json.loads(json.dumps(document))
    document["parameters"]["factors"][0] |= changes
    with pytest.raises(InputError, match="TO505"):
        calibrator_from_dict(document)


@pytest.mark.parametrize(
    ("group", "settings", "message"),
    [
        (None, {}, "TO409.*no group column"),
        ({"id": np.arange(60)}, {}, "TO517.*60 values of id in 60 rows"),
        ({"a": np.arange(60) % 2}, {"columns": ["b"]}, "TO516.*no b; there are a"),
        ({"a": np.arange(60) % 2}, {"columns": 3}, "TO203.*list of names"),
        ({"a": np.arange(60) % 2}, {"columns": ["a", "a"]}, "TO203.*twice"),
        ({"a": np.arange(60) % 2}, {"crossings": 2}, "TO203.*2 with 1 group columns"),
    ],
)
def test_what_cannot_be_fitted_is_refused(group, settings, message):
    preds = to.Predictions(np.arange(60) % 2, np.full(60, 0.4), group=group)
    with pytest.raises(InputError, match=message):
        to.fit(preds, "group_shift", **settings)


def test_more_than_two_classes_are_refused():
    preds = to.Predictions([0, 1, 2] * 20, np.full((60, 3), 1 / 3), group={"a": np.arange(60) % 2})
    with pytest.raises(InputError, match="TO511"):
        to.fit(preds, "group_shift")


def test_outcomes_that_are_all_the_same_have_a_finite_shift():
    fitted = to.fit(to.Predictions(np.zeros(50), np.full(50, 0.2), group={"a": np.arange(50) % 2}), "group_shift")
    assert -5 < fitted.m < 0
    assert "TN532" in [note.code for note in fitted.notes]


def test_the_scikit_learn_estimator_takes_groups_by_name():
    preds = draw(2000, 4, -1, 0.8)
    estimator = GroupShift().fit(preds.p, preds.y, group=preds.group)
    assert (
        estimator.predict_proba(preds.p, group=preds.group) == to.fit(preds, "group_shift").predict_proba(preds)
    ).all()
    assert estimator.predict(preds.p[:1], group={"site": [0]}).tolist() in ([0], [1])
    assert estimator.report_.confirmed
    with pytest.raises(InputError, match="TO516"):
        estimator.predict_proba(preds.p)
