"""Does a region choose the rows it says, by predictions alone, and refuse what it cannot read?"""

import numpy as np
import pytest

import trueodds as to
from trueodds import InputError, Predictions, measure, tally
from trueodds.lenses.region import select_region


def three():
    P = np.array([[0.9, 0.1, 0.0], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.0, 0.05, 0.95]])
    return Predictions(["cat", "dog", "elk", "elk"], P, classes=["cat", "dog", "elk"])


@pytest.mark.parametrize(
    ("region", "rows"),
    [
        ("confidence > 0.6", [0, 3]),  # .6 itself is not above .6
        ("confidence >= 0.6", [0, 2, 3]),
        ("confidence>0.4 and class:elk<=0.2", [0, 1]),
        ("class:cat < 1e-3", [3]),
        ({"class:dog": (0.1, 0.3)}, [0, 1, 2]),
        ({"confidence": (0.55, 1), "class:elk": (0, 0.9)}, [0, 2]),
        (lambda P: P[:, 1] > 0.15, [1, 2]),
    ],
)
def test_a_region_keeps_the_rows_that_it_names(region, rows):
    preds = three()
    assert np.array_equal(select_region(preds, region).p, preds.p[rows])


def test_the_error_in_a_region_is_conditional_on_it():
    # Above .8: said .9 and .95, both came: (.1 + .05) / 2. Below: said .5 and .6, one came (bins (.46,.53], (.53,.6]).
    preds = three()
    assert measure(preds, "ece", region="confidence > 0.8", interval=None).value == pytest.approx(0.075)
    below = measure(preds, "ece", region="confidence < 0.8", interval=None)
    assert below.value == pytest.approx((0.5 + 0.4) / 2)
    assert (below.n, below.settings["region"]) == (2, "confidence < 0.8")
    worst = measure(preds, "mce", region={"confidence": (0, 0.8)}, interval=None)
    assert worst.value == pytest.approx(0.5)


def test_a_test_in_a_region_redraws_its_rows_only():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < np.where(p > 0.5, p, 1 - p)).astype(int)  # right above one half, wrong below
    preds = Predictions(y, p)
    assert to.test(preds, region="class:1 > 0.5", resamples=199).pvalue > 0.01
    assert to.test(preds, region="class:1 < 0.5", resamples=199).pvalue == pytest.approx(1 / 200)


@pytest.mark.parametrize(
    ("region", "code"),
    [
        ("confidence > 2", "TO108"),
        ("confidence ! 0.5", "TO203"),
        ("confidence > a.b", "TO203"),
        ("konfidence > 0.5", "TO203"),
        ("class:cow > 0.5", "TO204"),
        ({"confidence": 0.5}, "TO203"),
        (0.5, "TO203"),
        (lambda P: P[:, 0], "TO203"),
        (lambda P: np.array([True]), "TO203"),
    ],
)
def test_what_cannot_be_read_is_refused(region, code):
    with pytest.raises(InputError) as refusal:
        select_region(three(), region)
    assert refusal.value.code == code


def test_a_tally_has_no_regions():
    with pytest.raises(InputError) as refusal:
        measure(tally(three()), "ece", region="confidence > 0.5")
    assert refusal.value.code == "TO403"


def test_a_bound_means_the_same_in_every_type():
    P = np.repeat([[0.1, 0.9], [0.05, 0.95]], 10, axis=0)
    for dtype in (np.float16, np.float32, np.float64):
        preds = Predictions([1] * 20, P.astype(dtype), sum_tolerance=0.01)
        assert select_region(preds, "confidence >= 0.9").n == 20


def test_a_class_may_have_and_in_its_name():
    preds = Predictions(["oil", "salt and pepper"], [[0.9, 0.1], [0.2, 0.8]], classes=["oil", "salt and pepper"])
    assert select_region(preds, "class:salt and pepper > 0.5 and confidence > 0.1").n == 1
    assert select_region(preds, "positive > 0.5").n == 1
