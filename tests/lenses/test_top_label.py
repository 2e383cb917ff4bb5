"""Does the lens top-label look at confidence apart for each predicted class?"""

import numpy as np
import pytest

import trueodds as to
from trueodds import InputError, Predictions
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws


def test_errors_of_predicted_classes_are_weighted_by_how_often_each_is_predicted():
    # Predicted class 0 three times at .8, right twice: |.8 - 2/3|. Class 1 once at .9, right: .1.
    P = [[0.8, 0.2, 0], [0.8, 0, 0.2], [0.8, 0.1, 0.1], [0.05, 0.9, 0.05]]
    estimate = to.measure(Predictions([0, 0, 1, 1], P), "ece", lens="top-label", interval=None)
    assert estimate.parts == pytest.approx({"predicted:0": 0.8 - 2 / 3, "predicted:1": 0.1})
    assert estimate.value == pytest.approx(0.75 * (0.8 - 2 / 3) + 0.25 * 0.1)
    assert (estimate.n, estimate.settings["aggregate"]) == (4, "weight")


def test_it_sees_what_confidence_averages_away():
    # Class 0 says .7 and is always right, class 1 says .7 and is right in 40 %: together 70 %.
    P = np.repeat([[0.7, 0.3], [0.3, 0.7]], 50, axis=0)
    y = np.repeat([0, 1, 0], [50, 20, 30])
    preds = Predictions(y, P)
    assert to.measure(preds, "ece", lens="confidence", interval=None).value == pytest.approx(0, abs=1e-12)
    assert to.measure(preds, "ece", lens="top-label", interval=None).value == pytest.approx(0.3)


def test_null_draws_are_those_of_each_predicted_class_alone():
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 3, 60), rng.dirichlet([1, 1, 1], 60))
    estimator = to.estimators.ESTIMATORS.make("ece", {})
    joint = Estimand.from_predictions(estimator, as_lens("top-label"), preds, "weight")
    (draws,) = null_draws(preds, [joint], 50, np.random.default_rng(1))
    (overall,) = null_draws(
        preds, [Estimand.from_predictions(estimator, as_lens("confidence"), preds)], 50, np.random.default_rng(1)
    )
    # With one predicted class left, its own draws are those of confidence on the same labels.
    only = preds[np.argmax(preds.P, axis=1) == 0]
    alone = Estimand.from_predictions(estimator, as_lens("top-label"), only, "weight")
    same = Estimand.from_predictions(estimator, as_lens("confidence"), only)
    a, b = (null_draws(only, [estimand], 50, np.random.default_rng(2))[0] for estimand in (alone, same))
    assert np.allclose(a, b, rtol=0, atol=1e-15)
    # Splitting the rows by class can only raise an average of absolute gaps.
    assert draws.shape == (3, 50)
    assert (joint.combine_views(draws) >= overall[0] - 1e-12).all()


def test_it_needs_every_class():
    with pytest.raises(InputError) as refusal:
        to.measure(Predictions.from_confidence([0.9], [1]), "ece", lens="top-label")
    assert refusal.value.code == "TO204"
