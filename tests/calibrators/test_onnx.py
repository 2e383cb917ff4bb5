"""Does a graph that runs anywhere say what the map says?"""

import builtins

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.calibrators.rows import FORMULA_SETTINGS, REQUIRED_SETTINGS, draw_predictions
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.fitting import fit
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def is_mixture(name: str) -> bool:
    """Whether maps of the calibrator have the form of mixtures of softmax(W log p + b)."""
    map_type = CALIBRATORS.load(name).map_type
    return map_type is not None and (
        map_type.mixture_terms is not CalibrationMap.mixture_terms
        or map_type.mixture_stages is not CalibrationMap.mixture_stages
    )


def suits(name: str, k: int) -> bool:
    """Whether the map has that form for K classes; curves of single classes have it for two only."""
    spec_type = CALIBRATORS.load(name)
    return k == 2 or not (spec_type.two_classes or spec_type.map_type.one_vs_rest)


CASES = [
    (name, k, REQUIRED_SETTINGS.get(name, {}) | FORMULA_SETTINGS.get(name, {}))
    for name in CALIBRATORS.names()
    if is_mixture(name)
    for k in (2, 4)
    if suits(name, k)
]
CASES += [("structured", 4, {"form": "vector"}), ("prior_shift", 4, {"priors": (0.1, 0.2, 0.3, 0.4)})]


def fitted_on(name, k, settings):
    P, y = draw_predictions(500, k, 1.7, 1)
    return fit(CALIBRATORS.make(name, settings), Predictions(y, P)), P


def run(path, name, values):
    (output,) = ReferenceEvaluator(onnx.load(path)).run(None, {name: values})
    return output


@pytest.mark.parametrize(("name", "k", "settings"), CASES)
def test_the_graph_says_what_the_map_says(name, k, settings, tmp_path):
    calibrator, P = fitted_on(name, k, settings)
    calibrator.to_onnx(tmp_path / "map.onnx")
    assert run(tmp_path / "map.onnx", "probabilities", P) == pytest.approx(calibrator.predict_proba(P), abs=1e-12)


@pytest.mark.parametrize(("name", "k", "settings"), CASES)
def test_exact_zeros_are_no_exception(name, k, settings, tmp_path):
    calibrator, _ = fitted_on(name, k, settings)
    calibrator.to_onnx(tmp_path / "map.onnx")
    P = np.eye(k)[[0, -1]] * 0.75
    P[:, 1 if k > 2 else 0] += 0.25
    P = np.concatenate([np.eye(k), P / P.sum(axis=1, keepdims=True)])
    assert run(tmp_path / "map.onnx", "probabilities", P) == pytest.approx(calibrator.predict_proba(P), abs=1e-12)


def test_a_tiny_probability_of_the_baseline_is_not_replaced(tmp_path):
    # min_prob of mcllo replaces an exact zero of the baseline alone; it replaced all below 1e-12, an error of 0.036.
    calibrator, _ = fitted_on("mcllo", 4, {})
    calibrator.to_onnx(tmp_path / "map.onnx")
    P = np.array([[0.5, 0.25, 0.25 - 1e-14, 1e-14], [0.5, 0.5, 0.0, 1e-14], [0.5, 1e-14, 0.5, 0.0]])
    assert run(tmp_path / "map.onnx", "probabilities", P) == pytest.approx(calibrator.predict_proba(P), abs=1e-12)


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_rows_are_divided_by_their_sums_as_the_map_does(name, tmp_path):
    calibrator, P = fitted_on(name, 4, {})
    calibrator.to_onnx(tmp_path / "map.onnx")
    P = P * (1 + np.linspace(-9e-6, 9e-6, len(P)))[:, None]
    assert run(tmp_path / "map.onnx", "probabilities", P) == pytest.approx(calibrator.predict_proba(P), abs=1e-12)


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_a_map_of_logits_takes_logits(name, tmp_path):
    P, y = draw_predictions(500, 3, 1.7, 1)
    z = np.log(P) + np.random.default_rng(0).normal(size=(500, 1))
    calibrator = fit(CALIBRATORS.make(name, {"logits": True}), Predictions.from_logits(y, z))
    calibrator.to_onnx(tmp_path / "map.onnx")
    assert run(tmp_path / "map.onnx", "logits", z) == pytest.approx(calibrator.predict_proba(z, logits=True), abs=1e-12)


@pytest.mark.slow
def test_what_auto_delivers_is_written_with_its_share_of_the_uniform(tmp_path):
    P, y = draw_predictions(1000, 3, 2.0, 1)
    calibrator = fit(CALIBRATORS.make("auto", {}), Predictions(y, P))
    calibrator.to_onnx(tmp_path / "map.onnx")
    P[0] = [0.0, 0.0, 1.0]
    probs = run(tmp_path / "map.onnx", "probabilities", P)
    assert probs == pytest.approx(calibrator.predict_proba(P), rel=1e-12)
    assert probs[0, 0] == pytest.approx(1 / 3003)


def test_a_map_without_a_formula_is_refused_with_what_to_do(tmp_path):
    calibrator, _ = fitted_on("kernel", 2, {})
    with pytest.raises(InputError, match=r"TO524.*JSON"):
        calibrator.to_onnx(tmp_path / "map.onnx")


def test_without_the_library_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *rest, **more)

    calibrator, _ = fitted_on("temperature", 2, {})
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InputError, match=r"TO524.*\[onnx\]"):
        calibrator.to_onnx(tmp_path / "map.onnx")


def test_a_folder_that_does_not_exist_is_a_coded_error(tmp_path):
    calibrator, _ = fitted_on("temperature", 2, {})
    with pytest.raises(InputError, match="TO503"):
        calibrator.to_onnx(tmp_path / "nowhere" / "map.onnx")
