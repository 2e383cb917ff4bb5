"""Boosting of the log odds over groups and features by small trees."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit

import trueodds as to
from trueodds.calibrators import Multicalibrated
from trueodds.calibrators._groups.rows_with_columns import bins_of_numbers
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.group_shift import GroupShiftMap
from trueodds.calibrators.multicalibrated import BinnedRows, BoostedTree, MulticalibratedMap, Split, fit_tree
from trueodds.core.errors import InputError


def draw(n, effect=1.0, seed=0):
    """Predictions whose log odds are too low where the feature x is above 0.5, in two sites, with labels."""
    rng = np.random.default_rng(seed)
    log_odds, x, site = rng.normal(-1, 1, n), rng.normal(size=n), rng.choice(["a", "b"], n)
    y = (rng.random(n) < expit(log_odds + effect * (x > 0.5))).astype(int)
    return to.Predictions(y, expit(log_odds), group={"site": site}), {"x": x}


def test_a_tree_splits_where_the_scores_change_sign():
    # 40 rows at q = 1/2, with y = 0 in bins 0 and 1, and y = 1 in bins 2 and 3: U = ∓10 and I = 5 on either side,
    # so that the leaves have ∓0.15 · 10 / (5 + 1) = ∓0.25.
    bins = np.repeat(np.arange(4), 10)[None]
    y = (bins[0] > 1).astype(float)
    data = BinnedRows(bins, np.array([4]), np.array([False]), np.zeros(40), y, np.ones(40))
    tree = fit_tree(data, np.zeros(40))
    assert [(split.leaf, split.feature, split.left.tolist()) for split in tree.splits] == [(0, 0, [0, 1])]
    assert tree.values.tolist() == pytest.approx([-0.25, 0.25])
    assert tree.predict(bins).tolist() == pytest.approx(np.where(y == 1, 0.25, -0.25).tolist())


def test_categories_are_ordered_by_their_scores():
    bins = np.repeat(np.arange(4), 10)[None]
    y = np.isin(bins[0], [0, 3]).astype(float)  # no threshold on the numbers of the categories separates them
    data = BinnedRows(bins, np.array([4]), np.array([True]), np.zeros(40), y, np.ones(40))
    assert fit_tree(data, np.zeros(40)).splits[0].left.tolist() == [1, 2]


def test_rare_large_values_have_edges_of_their_own():
    x = np.concatenate([np.zeros(9900), np.arange(1, 101) * 100.0])
    edges = bins_of_numbers("gain", x).edges
    assert (edges > 100).sum() > 20


@pytest.mark.slow
def test_a_feature_that_groups_do_not_show_is_corrected_in_new_rows():
    preds, features = draw(4000)
    fitted = to.fit(preds, "multicalibrated", features=features)
    assert fitted.report.confirmed
    new, new_features = draw(4000, seed=1)
    q = fitted.predict_proba(new, features=new_features)[:, 1]
    high = new_features["x"] > 0.7
    assert abs((new.y - new.p)[high].mean()) > 0.1  # before
    assert abs((new.y - q)[high].mean()) < 0.04  # twice the standard error of about 1,000 rows, and the fit's own


def test_calibrated_rows_are_left_to_the_overall_shift():
    preds, features = draw(2000, effect=0.0)
    fitted = to.fit(preds, "multicalibrated", features=features)
    assert not fitted.report.confirmed
    assert fitted.calibration_map.trees == ()
    assert abs(logit(fitted.predict_proba([0.3])[0, 1]) - logit(0.3)) < 0.2


@pytest.mark.slow
def test_confirmed_shifts_of_groups_start_the_boosting():
    rng = np.random.default_rng(2)
    log_odds, site = rng.normal(-1, 1, 4000), rng.choice(list("abcd"), 4000)
    shift = {"a": 0.8, "b": -0.8, "c": 0.4, "d": -0.4}
    y = rng.random(4000) < expit(log_odds + np.array([shift[s] for s in site]))
    fitted = to.fit(to.Predictions(y, expit(log_odds), group={"site": site}), "multicalibrated")
    assert [factor.columns for factor in fitted.calibration_map.start.factors] == [("site",)]


def test_missing_numbers_and_unknown_categories_have_a_bin():
    rng = np.random.default_rng(3)
    x, kind = rng.normal(size=3000), rng.choice(["u", "v"], 3000)
    x[::3] = np.nan
    p = np.full(3000, 0.5)
    y = rng.random(3000) < np.where(np.isnan(x), 0.8, 0.4)
    preds = to.Predictions(y, p)
    fitted = to.fit(preds, "multicalibrated", features={"x": x, "kind": kind}, confirm=False)
    q = fitted.predict_proba([0.5] * 3, features={"x": [np.nan, 0.0, 0.0], "kind": ["u", "u", "new"]})[:, 1]
    assert q[0] == pytest.approx(0.8, abs=0.05)
    assert q[1:] == pytest.approx(0.4, abs=0.08)


@pytest.mark.slow
def test_a_saved_calibrator_finds_features_by_name(tmp_path):
    preds, features = draw(2000)
    fitted = to.fit(preds, "multicalibrated", features=features)
    fitted.save(tmp_path / "cal.json")
    loaded = to.load(tmp_path / "cal.json")
    q = fitted.predict_proba(preds, features=features)
    assert (loaded.predict_proba(preds, features=features) == q).all()
    assert (loaded.recalibrate(preds, features=features).p == q).all()
    with pytest.raises(InputError, match=r"TO516.*no x"):
        loaded.predict_proba(preds)
    with pytest.raises(InputError, match=r"TO518.*x had numbers"):
        loaded.predict_proba(preds, features={"x": ["high"] * 2000})


@pytest.mark.slow
def test_group_columns_can_be_named_as_features():
    preds, features = draw(2000)
    both = to.Predictions(preds.y, preds.p, group={**preds.group, **features})
    named = to.fit(both, "multicalibrated", features="x")
    passed = to.fit(preds, "multicalibrated", features=features)
    assert named.calibration_map.to_dict() == passed.calibration_map.to_dict()
    assert (named.predict_proba(both) == passed.predict_proba(preds, features=features)).all()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (3, "TO203.*data frame, a mapping"),
        ([3], "TO203.*list of names"),
        (["x"], "TO516.*no x; there are site"),
        ({"x": [1.0]}, "TO112.*shape"),
        ({"x": ["a", None] * 30}, "TO112.*Give missing values a name"),
        ({"site": np.arange(60)}, "TO518.*name of a group column"),
    ],
)
def test_features_that_cannot_be_used_are_refused(features, message):
    preds = to.Predictions(np.arange(60) % 2, np.full(60, 0.4), group={"site": np.arange(60) % 3})
    with pytest.raises(InputError, match=message):
        to.fit(preds, "multicalibrated", features=features)


def test_more_than_a_thousand_categories_are_refused():
    preds = to.Predictions(np.arange(2400) % 2, np.full(2400, 0.4))
    with pytest.raises(InputError, match=r"TO518.*1,200 in code"):
        to.fit(preds, "multicalibrated", features={"code": (np.arange(2400) // 2).astype(str)})
    with pytest.raises(InputError, match="TO409"):
        to.fit(preds, "multicalibrated")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leaf": 3}, r"leaf must be at most 0 in split 0. Got 3\."),
        ({"feature": 9}, r"feature must be a number below 3. Got 9\."),
        ({"left": [-1]}, "left"),
        ({"left": "all"}, "left"),
    ],
)
def test_a_changed_tree_is_refused(change, message):
    preds, features = draw(1000)
    document = json.loads(json.dumps(to.fit(preds, "multicalibrated", features=features, confirm=False).to_dict()))
    document["parameters"]["trees"][0]["splits"][0] |= change
    with pytest.raises(InputError, match=rf"TO505.*{message}"):
        calibrator_from_dict(document)


def test_a_tree_with_a_leaf_too_many_is_refused():
    tree = BoostedTree((Split(0, 0, np.array([0])),), np.array([0.5, 0.25, 0.125]))
    with pytest.raises(InputError, match=r"TO505.*values must be 2 numbers, one per leaf. Got \[0.5, 0.25, 0.125\]\."):
        MulticalibratedMap(GroupShiftMap(0.0, ()), (), (tree,)).check_saved(2)


@pytest.mark.slow
def test_the_scikit_learn_estimator_takes_features():
    preds, features = draw(2000)
    estimator = Multicalibrated().fit(preds.p, preds.y, group=preds.group, features=features)
    expected = to.fit(preds, "multicalibrated", features=features).predict_proba(preds, features=features)
    assert (estimator.predict_proba(preds.p, preds.group, features) == expected).all()
