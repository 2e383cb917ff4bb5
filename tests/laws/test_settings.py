"""Are settings that mean nothing refused as soon as a method has them, by a code that names the value?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds import InputError
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.top_vs_all import TopVsAllSpec
from trueodds.core.registry import Registry
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS

# Values of single settings that have the right type or a meaning elsewhere, and are refused here with TO203.
VALUES: dict[Registry, dict[str, dict[str, list[Any]]]] = {
    ESTIMATORS: {
        "ece": {
            "order": [0.5, float("nan"), "2"],
            "distance": ["euclid"],
            "min_count": [0, 2.5, True],
            "partition": ["uniform", 15],
        },
        "ace": {"partition": [15]},
        "tace": {"threshold": [1.0, -0.1, "K", True], "normalize": ["rows"], "partition": ["equal-mass"]},
        "average_ce": {"order": [0.5]},
        "sweep": {"base": ["sweep", EqualMass(3)], "order": [0.5, "2", np.nan]},
        "debiased_l2": {"form": ["sun"], "partition": ["uniform", Sweep()]},
        "debiased_l1": {"partition": [Sweep()]},
        "ece_linear": {
            "bins": [0, 2.5, True, "many"],
            "base": ["sweep"],
            "range": ["K"],
            "mapping": ["linear"],
            "weights": ["kernel"],
            "closed": ["both"],
        },
        "mmce": {"form": ["plug-in", "unbiassed", None, 1]},
        "ece_kde": {
            "bandwidth": ["scott", 0, 0.001, 2, True, float("nan")],
            "kernel": ["box"],
            "range": ["0..1"],
            "order": [0.5, "1"],
            "min_density": [0, 1],
        },
        "kde_mixnmatch": {"order": [0, 0.5, np.inf, float("nan"), "1", True]},
        "corp": {"score": ["spherical", "Brier", 1, None, ["brier"]]},
        "calibration_intercept": {"min_prob": [0.6, -1, True]},
        "calibration_slope": {"min_prob": [0.6, -1, True]},
        "brier": {"decomposition": ["murphey", "corp", 3]},
        "log_loss": {"decomposition": ["murphy"]},
        "entce": {"signed": ["yes", 1], "base": [10, "nats"], "correction": ["chao"]},
        "rankcs": {"ties": ["broken", None]},
        "truthful": {"form": ["two"], "bins": [10]},
        "utility": {"utility": ["bottom", "top-0", "class:x", [1], [], [[1, 2], [3]], [1, np.nan], 3, None]},
        "decision_regret": {"partition": ["equal-mass"]},
        "cross_fitted": {
            "folds": [1, 2.5],
            "fit_on": ["all"],
            "rng": [-1, np.random.default_rng(0)],
            "distance": ["kl", "lp:0.5", "lp:x"],
        },
    },
    TESTS: {
        "consistency": {"redraw": ["rows"], "resamples": [0]},
        "cox": {"part": ["both"], "form": ["wald"], "min_prob": [0.6, -1, True]},
        "giviti": {"fitted": [1], "max_degree": [0, 2.5], "form": ["x"]},
        "hosmer_lemeshow": {"null": [np.array([]), np.array(["auto", "redraw"]), 1, "exact"]},
        "mcllo": {
            "form": ["rao"],
            "min_prob": [0.6, True],
            "baseline": ["cat", True],
            "variance": ["sandwich"],
            "prior": [1, True],
            "baselines": [3],
        },
    },
    CALIBRATORS: {
        "temperature": {"min_prob": [0, -1, 0.5, "x", True]},
        "ensemble_temperature": {"loss": ["mse"], "min_prob": [0, 0.7]},
        "top_vs_all": {"calibrator": ["auto", "top_vs_all", 3, TopVsAllSpec()]},
        "bias_corrected_temperature": {"min_prob": [0, 0.5, "x"]},
        "llo": {"min_prob": [0, -1, 0.5, "x", True]},
        "platt": {"on": ["probit", None], "smooth": ["yes", 1], "min_prob": [0]},
        "beta": {"parameters": ["abc", None], "min_prob": [0]},
        "boldness": {"posterior": [1.0, 0], "prior": [True, "x"], "min_prob": [0]},
        "evidential": {"on": ["logits"], "output": ["mean"], "parameters": [3, True], "min_prob": [0]},
        "structured": {"form": ["tensor"], "penalty": [-1, "auto"], "min_prob": [0]},
        "mcllo": {"penalty": [-1, "x"], "min_prob": [0], "baseline": ["cat", True, 1.5]},
        "vector": {"penalty": [-1, "x", True, np.inf], "logits": [1], "min_prob": [0]},
        "dirichlet": {"penalty": [-1, "odir", np.nan], "bias_penalty": [0.1], "shrink": ["l2"], "min_prob": [1]},
        "matrix": {"logits": ["yes"], "penalty": [-1], "shrink": ["l2"], "min_prob": [0]},
        "spline": {
            "kind": ["cubic"],
            "knots": [2, 101, 6.0, True],
            "penalty": [0, -1.0, np.inf, "gcv", True],
            "min_prob": [0],
        },
        "kernel": {"bandwidth": ["scott", 0.001, np.nan, True], "scale": ["log"], "monotone": [1], "min_prob": [0.7]},
        "prior_shift": {"how": ["magic"], "priors": ["balanced"]},
        "irova_ts": {"min_prob": [0]},
        "isotonic": {"between": ["cubic"]},
        "venn_abers": {"multiclass": ["ovr", "", None, 1]},
        "scaling_binning": {"bins": [0, 2.5, "many"], "min_prob": [0]},
        "histogram": {"bins": [0, 2.5, "many"], "partition": ["sweep"]},
        "simplex_histogram": {"partition": ["uniform"], "min_size": [0, 2.5], "bins": [0, 10**9]},
        "auto": {
            "alpha": [1.5],
            "folds": [1],
            "rng": [-1],
            "candidates": ["temperature", ("auto",), ["temperature", "temperature"]],
        },
    },
    DIAGRAMS: {
        "reliability": {
            "level": [1, True],
            "style": ["modern"],
            "bars": ["error"],
            "by": ["hand"],
            "interval": ["wald"],
            "resamples": [0],
            "simultaneous": ["yes"],
        },
        "reliability_curve": {
            "band": ["honest"],
            "level": [90],
            "simultaneous": ["yes"],
            "bandwidth": ["scott", 0.01],
            "scale": ["log"],
            "range": ["0.5"],
            "resamples": [50, 99.5],
            "bins": [0],
            "smoother": ["lowess"],
        },
        "corp": {
            "band": ["ribbon"],
            "style": ["diagonal"],
            "score": ["spherical"],
            "how": ["exact"],
            "redraw": ["none"],
            "level": [90],
            "resamples": [10, 99.5],
            "bins": [0],
        },
        "calibration_belt": {
            "levels": [[95], [], [0.5, 0.6, 0.7, 0.8, 0.9]],
            "max_degree": [0],
            "fitted": [1],
            "min_prob": [0.7],
        },
        "cumulative": {"level": [0, 1, 95, True]},
        "recalibration_lines": {"posteriors": [[2]], "prior": [1], "min_prob": [0], "baseline": ["a"], "classes": [3]},
        "mcllo_parameters": {"level": [1], "min_prob": [0], "baseline": [1.5], "ellipses": ["yes"], "classes": ["abc"]},
        "llo_posterior": {"posteriors": [(1.0,)], "prior": [0], "resolution": [1, True], "min_prob": [0.7]},
        "simplex": {"ellipses": ["yes"], "simultaneous": [2], "level": [95]},
        "tetrahedron": {"azimuth": ["left", float("nan")], "elevation": [91], "level": [1]},
        "murphy": {
            "thresholds": [1, True, [0.2, 1.2], "many", []],
            "resamples": [98],
            "style": ["triptych"],
            "band": ["both"],
            "level": [1],
        },
        "comparison": {"style": ["murphy"], "bars": ["both"], "paired": ["yes"], "level": [0]},
    },
}
# Settings that are refused together, or by the name of the method only.
TOGETHER: list[tuple[Registry, str, dict[str, Any], str]] = [
    (ESTIMATORS, "decision_regret", {"calibrator": "isotonic"}, "TO203"),
    (ESTIMATORS, "decision_regret", {"cost": [1, 2]}, "TO203"),
    (ESTIMATORS, "decision_regret", {"cost": [[1, 2], [3]]}, "TO203"),
    (ESTIMATORS, "decision_regret", {"cost": [[0, np.inf], [1, 0]]}, "TO203"),
    (ESTIMATORS, "decision_regret", {"cost": "high"}, "TO203"),
    (CALIBRATORS, "auto", {"candidates": ("temprature",)}, "TO201"),
    (CALIBRATORS, "dirichlet", {"bias_penalty": "auto", "penalty": 1}, "TO203"),
    (CALIBRATORS, "dirichlet", {"penalty": 1, "shrink": "l1"}, "TO203"),
    (CALIBRATORS, "dirichlet", {"penalty": 1, "target": "one"}, "TO203"),
    (CALIBRATORS, "kernel", {"bandwidth": 1.5, "scale": "probability"}, "TO203"),
    (CALIBRATORS, "kernel", {"bandwidth": 0.01, "scale": "logit"}, "TO203"),
    (CALIBRATORS, "prior_shift", {"priors": [0.5, 0.5], "target": [0.5]}, "TO205"),
    (CALIBRATORS, "spline", {"kind": "gupta", "penalty": 1.0}, "TO203"),
    (DIAGRAMS, "corp", {"band": None, "how": "discrete"}, "TO203"),
    (ESTIMATORS, "cross_fitted", {"calibrator": "magic"}, "TO201"),
    (ESTIMATORS, "decision_regret", {"cost": [[0.0, 4.0], [1.0, 0.0]], "bins": 5}, "TO203"),
    (ESTIMATORS, "brier", {"decomposition": "murphy", "bins": 0}, "TO203"),
    (ESTIMATORS, "brier", {"bins": 10}, "TO202"),
    (ESTIMATORS, "log_loss", {"partition": "distinct"}, "TO202"),
    (ESTIMATORS, "brier", {"decomposition": "murphy", "order": 2}, "TO202"),
    (ESTIMATORS, "truthful", {"form": "quantile", "bins": 0}, "TO203"),
    (ESTIMATORS, "truthful", {"form": "quantile", "bins": "many"}, "TO203"),
    (TESTS, "consistency", {"resample": 9}, "TO202"),
    (TESTS, "consistency", {"statistic": "ecee"}, "TO201"),
    (TESTS, "giviti", {"max_degree": 1, "fitted": True}, "TO203"),
    (TESTS, "mcllo", {"null": "redraw", "variance": "empirical"}, "TO205"),
]

REGISTRIES = (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS)
# Settings that are read where the rows are: a generator of random numbers, the statistic of a group, names of columns.
READ_LATER = (
    (ESTIMATORS, "decision_regret", "rng"),
    (DIAGRAMS, "groups", "estimator"),
    (CALIBRATORS, "group_shift", "columns"),
    (CALIBRATORS, "multicalibrated", "columns"),
    (CALIBRATORS, "multicalibrated", "features"),
)


def every_setting() -> Iterator[tuple[Registry, str, str]]:
    """Each registry, method and setting, except those that are read later."""
    for registry in REGISTRIES:
        for name in registry.names():
            for setting in registry.load(name).setting_names():
                if (registry, name, setting) not in READ_LATER:
                    yield registry, name, setting


@pytest.mark.parametrize(
    ("registry", "name", "settings"),
    [
        pytest.param(registry, name, {setting: value}, id=f"{name}-{setting}-{i}")
        for registry, methods in VALUES.items()
        for name, settings in methods.items()
        for setting, values in settings.items()
        for i, value in enumerate(values)
    ],
)
def test_a_value_without_meaning_is_refused(registry: Registry, name: str, settings: dict[str, Any]) -> None:
    with refused("TO203"):
        registry.load(name)(**settings)


@pytest.mark.parametrize(("registry", "name", "settings", "code"), TOGETHER)
def test_settings_without_meaning_together_or_here_are_refused(
    registry: Registry, name: str, settings: dict[str, Any], code: str
) -> None:
    with refused(code):
        registry.make(name, settings)


def test_no_setting_of_any_method_takes_an_unknown_word_or_object() -> None:
    for registry, name, setting in every_setting():
        for value in ("no such word", object()):
            with pytest.raises(InputError) as caught:
                registry.make(name, {setting: value})
            assert caught.value.got.strip() or caught.value.code == "TO202", (name, setting)
            assert caught.value.fix.strip(), (name, setting)
