"""What works on confidence and correctness alone, and what does the rest ask for? Every member of every registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueodds.api.verbs import draw, fit, measure, test
from trueodds.calibrators import CALIBRATORS
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.data.predictions import Predictions
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.lens import NAMES

FAMILIES: Mapping[str, tuple[Registry, Callable[..., Any]]] = {
    "estimator": (ESTIMATORS, lambda preds, name, **more: measure(preds, name, interval=None, **more)),
    "test": (TESTS, lambda preds, name, **more: test(preds, name, **_resample_settings(name), **more)),
    "calibrator": (CALIBRATORS, fit),
    "diagram": (DIAGRAMS, draw),
}  # fmt: skip
MIN_PROB = 1e-6  # for what takes log odds, where a confidence is 0 or 1


def works(preds: Predictions) -> list[dict[str, str]]:
    """Kind, name, and `yes`, `with min_prob=1e-06`, or the refusal with its code."""
    rows = [{"kind": "lens", "name": name, "works": _answer(measure, preds, "ece", lens=name)} for name in NAMES]
    for kind, (registry, ask) in FAMILIES.items():
        for name in registry.names():
            answer = _answer(ask, preds, name)
            if answer != "yes" and _answer(ask, preds, name, min_prob=MIN_PROB) == "yes":
                answer = f"with min_prob={MIN_PROB:g} ({answer.split(':')[0]} without)"
            rows.append({"kind": kind, "name": name, "works": answer})
    return rows


def _answer(ask: Callable[..., Any], preds: Predictions, name: str, **more: Any) -> str:
    try:
        ask(preds, name, **more)
    except InputError as refusal:
        return f"{refusal.code}: {refusal.problem}"
    return "yes"


def _resample_settings(name: str) -> dict[str, Any]:
    return {"resamples": 19} if TESTS.takes(name, "resamples") else {}
