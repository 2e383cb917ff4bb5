"""Do the laws hold for every test of the registry?

Two things are no laws of a Monte-Carlo test and are not asked: its p-value moves with the order of rows and with
weights within its Monte-Carlo error, because each row has its own stream of draws. The statistic may not move.
A test to which a law cannot apply is listed in its `exemptions`, with the reason.
"""

import json

import numpy as np
import pytest

import trueodds as to
from tests.laws.rows import three_classes, two_shapes
from trueodds.core.errors import InputError
from trueodds.core.registry import dataclass_settings
from trueodds.hypotests import TESTS

LENSES = ("confidence", "classwise", "rank:2", "groups:[[0,2],[1]]", "canonical", "top-2")
VECTORS = ("canonical", "top-2")  # a vector per row
CASES = [
    (name, lens)
    for name in TESTS.names()
    for lens in LENSES
    if TESTS.load(name).accepts_joint_views or lens not in VECTORS
]
ORDERLESS = [(name, lens) for name, lens in CASES if "row order" not in TESTS.load(name).exemptions]
NULLS = [(name, null) for name in TESTS.names() for null in TESTS.load(name).null_distributions]


def run_test(preds, name, lens, **settings):
    """Few draws, where the test takes draws: statistics are compared."""
    own = [key for key in dataclass_settings(TESTS.load(name)) if TESTS.has_setting(name, key)]
    options = {key: value for key, value in (("resamples", 19), ("min_prob", 0.01)) if key in own}
    if name == "decision_regret":
        settings.setdefault("cost", guesses)
    return to.test(preds, name, lens=lens, **options, **settings)


def guesses(P):
    """Costs of guessing how likely the last outcome is, in steps of 1/20: actions that small changes turn around."""
    return np.subtract.outer(np.arange(21) / 20, np.eye(P.shape[1])[-1]) ** 2


def weights_are_rows(name):
    return "weight two" not in TESTS.load(name).exemptions


def near(a, b):
    """Equal up to rounding: eigenvalues and iterated fits lose digits that sums do not."""
    return a == pytest.approx(b, rel=1e-8, abs=1e-10, nan_ok=True)


@pytest.mark.claim("docs/evidence.md", "The order of the rows is irrelevant.", "laws: the order of rows")
@pytest.mark.parametrize(("name", "lens"), ORDERLESS)
def test_row_order_does_not_move_the_statistic(name, lens):
    y, P, w = three_classes()
    order = np.random.default_rng(1).permutation(len(y))
    a = run_test(to.Predictions(y, P, weight=w), name, lens)
    b = run_test(to.Predictions(y[order], P[order], weight=w[order]), name, lens)
    assert near(a.statistic, b.statistic)
    assert list(a.parts) == list(b.parts)


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_weight_of_two_is_two_rows_in_the_statistic(name, lens):
    y, P, w = three_classes()
    times = w.astype(int)
    a = run_test(to.Predictions(y, P, weight=w), name, lens)
    b = run_test(to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), name, lens)
    assert near(a.statistic, b.statistic) == weights_are_rows(name)


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_frequency_weights_are_rows_to_the_last_digit(name, lens):
    y, P, w = three_classes()
    times = w.astype(int)
    a = run_test(to.Predictions(y, P, weight=w), name, lens, weight_kind="frequency").to_dict()
    b = run_test(to.Predictions(np.repeat(y, times), np.repeat(P, times, axis=0)), name, lens).to_dict()
    assert {**a, "settings": None} == {**b, "settings": None}


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_row_of_weight_zero_is_no_row(name, lens):
    y, P, _ = three_classes()
    w = np.ones(len(y))
    w[::5] = 0
    a = run_test(to.Predictions(y, P, weight=w), name, lens)
    b = run_test(to.Predictions(y[w > 0], P[w > 0]), name, lens)
    assert near(a.statistic, b.statistic)
    assert a.n == b.n == (w > 0).sum()


@pytest.mark.parametrize(("name", "lens"), CASES)
def test_a_verdict_is_a_probability_at_or_above_its_minimum_and_strict_json(name, lens):
    y, P, w = three_classes()
    verdict = run_test(to.Predictions(y, P, weight=w), name, lens)
    assert 0 < verdict.pvalue <= 1
    assert verdict.min_pvalue is None or verdict.pvalue >= verdict.min_pvalue
    assert verdict.effect is not None
    assert np.isfinite(verdict.effect)
    assert abs(verdict.effect) <= 1
    assert verdict.value == verdict.statistic
    with pytest.raises(InputError, match=r"\[TO207\]"):
        float(verdict)
    assert verdict.null
    head, _, null = str(verdict).splitlines()[0].rpartition(" · null: ")
    assert head
    assert verdict.null.startswith(null)
    assert null
    assert json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["n"] == (w > 0).sum()


@pytest.mark.parametrize(("name", "null"), NULLS)
def test_every_null_shows_one_statistic_and_says_which_it_is(name, null):
    y, P, _ = three_classes()
    preds = to.Predictions(y, P)
    lens = TESTS.load(name).lens or "confidence"
    verdict = run_test(preds, name, lens, null=null)
    assert verdict.settings["null"] == null
    assert (verdict.min_pvalue is None) == (null not in getattr(TESTS.load(name), "simulated_nulls", ("redraw",)))
    assert ("predictions kept fixed, so that" in verdict.null) == (null != "redraw")
    if (
        set(TESTS.load(name).null_distributions) <= {"asymptotic", "redraw"}
        and "one statistic" not in TESTS.load(name).exemptions
    ):
        assert verdict.statistic == run_test(preds, name, lens).statistic


@pytest.mark.parametrize("name", TESTS.names())
def test_binary_is_two_class(name):
    one, two = two_shapes()
    a, b = run_test(one, name, None), run_test(two, name, None)
    assert (a.statistic, a.pvalue) == pytest.approx((b.statistic, b.pvalue), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in TESTS.names() if "class order" not in TESTS.load(name).exemptions])
def test_permuting_classes_permutes_the_parts(name):
    y, P, _ = three_classes()
    order = np.array([2, 0, 1])  # new column j is old class order[j]
    a = run_test(to.Predictions(y, P), name, "classwise").parts
    b = run_test(to.Predictions(np.argsort(order)[y], P[:, order]), name, "classwise").parts
    for new, old in enumerate(order):
        assert near(b[f"class:{new}"]["statistic"], a[f"class:{old}"]["statistic"])


@pytest.mark.parametrize("name", TESTS.names())
def test_settings_are_read_back_and_input_is_left_alone(name):
    y, P, w = three_classes()
    before = [x.copy() for x in (y, P, w)]
    draws = {"resamples": 19} if TESTS.has_setting(name, "resamples") else {}
    if "redraw" in TESTS.load(name).null_distributions:
        draws["null"] = "redraw"
    verdict = to.test(to.Predictions(y, P, weight=w), name, lens="confidence", rng=7, **draws)
    assert verdict.settings["seed"] == 7
    assert draws.items() <= verdict.settings.items()
    assert all((x == original).all() for x, original in zip((y, P, w), before, strict=True))
    repeat = to.test(to.Predictions(y, P, weight=w), name, lens="confidence", rng=7, **draws)
    assert verdict.to_dict() == repeat.to_dict()


@pytest.mark.parametrize("name", TESTS.names())
def test_a_family_of_lenses_has_a_part_for_each(name):
    y, P, _ = three_classes()
    verdict = run_test(to.Predictions(y, P), name, ["confidence", "classwise"])
    assert list(verdict.parts) == ["confidence", "classwise"]
    assert verdict.lens == "family"
    assert verdict.family_pvalue == verdict.pvalue
    assert verdict.min_pvalue is None or verdict.pvalue >= verdict.min_pvalue


@pytest.mark.parametrize("name", TESTS.names())
def test_an_unknown_setting_is_refused(name):
    y, P, _ = three_classes()
    with pytest.raises(to.InputError, match="TO202"):
        to.test(to.Predictions(y, P), name, not_a_setting=1)
