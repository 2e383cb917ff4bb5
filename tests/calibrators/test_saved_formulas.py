"""Do the formulas of docs/compatibility.md give the probabilities of a saved calibrator, without the library?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SAVED = Path(__file__).parent / "saved"
PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def softmax(eta: np.ndarray) -> np.ndarray:
    q = np.exp(eta - eta.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def logs(P: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(P / P.sum(axis=1, keepdims=True))


def temperature(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    return softmax(parameters["beta"] * logs(P))


def linear(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    W, b = np.array(parameters["weights"]), np.array(parameters["bias"])
    if W.ndim == 1:
        return softmax(W * logs(P) + b)
    return softmax(np.log(np.maximum(np.exp(logs(P)), parameters["min_prob"])) @ W.T + b)


def structured(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    share = parameters["share"]
    q = (1 - share) * temperature(P, parameters) + share / P.shape[1]
    return linear(q, parameters | {"min_prob": 0})


def ensemble(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    tempered, unchanged, uniform = parameters["shares"]
    return tempered * temperature(P, parameters) + unchanged * P / P.sum(axis=1, keepdims=True) + uniform / P.shape[1]


def llo(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    eta = parameters["gamma"] * (logs(P)[:, 1] - logs(P)[:, 0]) + parameters["tau"]
    return softmax(np.stack([np.zeros(len(P)), eta], axis=1))


def mcllo(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    baseline = parameters["baseline"]
    gamma, tau = (np.insert(parameters[name], baseline, 0.0) for name in ("gamma", "tau"))
    return softmax(gamma * (logs(P) - logs(P)[:, [baseline]]) + tau)


def shift(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    q = P * np.exp(parameters["bias"])
    return q / q.sum(axis=1, keepdims=True)


def prior_shift(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
    q = P * np.array(parameters["ratios"])
    return q / q.sum(axis=1, keepdims=True)


def one_vs_rest(curve: Callable[[np.ndarray, np.ndarray, dict[str, Any]], np.ndarray]) -> Any:
    """Apply the curve of each class to its probability and to that of all others, and normalize."""

    def apply(P: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        curves = parameters["curves"]
        if len(curves) == 1:
            q = curve(P[:, 1], P[:, 0], curves[0])
            return np.stack([1 - q, q], axis=1)
        rest = P.sum(axis=1, keepdims=True) - P
        q = np.stack([curve(P[:, c], rest[:, c], one) for c, one in enumerate(curves)], axis=1)
        return q / q.sum(axis=1, keepdims=True)

    return apply


def sigmoid(eta: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-eta))


def platt(p: np.ndarray, rest: np.ndarray, curve: dict[str, Any]) -> np.ndarray:
    assert curve["on"] == "logit"
    return sigmoid(curve["slope"] * np.log(p / rest) + curve["intercept"])


def beta(p: np.ndarray, rest: np.ndarray, curve: dict[str, Any]) -> np.ndarray:
    return sigmoid(curve["a"] * np.log(p) - curve["b"] * np.log(rest) + curve["c"])


def knots(p: np.ndarray, rest: np.ndarray, curve: dict[str, Any]) -> np.ndarray:
    assert curve.get("between", "linear") == "linear"
    return np.interp(p, curve["x"], curve["y"])


def steps(p: np.ndarray, rest: np.ndarray, curve: dict[str, Any]) -> np.ndarray:
    return np.array(curve["values"])[np.clip(np.searchsorted(curve["edges"], p) - 1, 0, None)]


FORMULAS: dict[str, Any] = {
    "identity": lambda P, parameters: P,
    "temperature": temperature,
    **dict.fromkeys(("vector", "bias_corrected_temperature", "matrix", "dirichlet"), linear),
    "shift": shift,
    "structured": structured,
    "ensemble_temperature": ensemble,
    **dict.fromkeys(("llo", "boldness"), llo),
    "mcllo": mcllo,
    "prior_shift": prior_shift,
    "platt": one_vs_rest(platt),
    "beta": one_vs_rest(beta),
    **dict.fromkeys(("isotonic", "centered_isotonic", "enir"), one_vs_rest(knots)),
    **dict.fromkeys(("histogram", "bbq"), one_vs_rest(steps)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formula_on_the_page_gives_the_probabilities_of_the_library(name: str) -> None:
    saved = json.loads((SAVED / f"{name}.json").read_text(encoding="utf-8"))
    rows, expected = np.array(saved["rows"], float), np.array(saved["recalibrated"], float)
    rows = rows if rows.ndim == 2 else np.stack([1 - rows, rows], axis=1)
    inside = (rows > 0).all(axis=1)  # the formulas of the page are for probabilities above 0
    q = FORMULAS[name](rows[inside], saved["calibrator"]["parameters"])
    np.testing.assert_allclose(q, expected[inside], rtol=1e-9, atol=1e-12)


def test_the_page_has_every_formula_and_every_parameter() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    for name in FORMULAS:
        (line,) = (line for line in lines if f"`{name}`" in line.split("|")[1])
        parameters = json.loads((SAVED / f"{name}.json").read_text(encoding="utf-8"))["calibrator"]["parameters"]
        keys = set(parameters) | set(parameters.get("curves", [{}])[0])
        named = set(re.findall(r"`(\w+)`", line))
        assert keys - {"n_passes", "converged", "certainty", "curves", "logits", "empty", "on", "between"} <= named, (
            name
        )
