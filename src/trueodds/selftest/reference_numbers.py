"""Compare methods with the values that independent programs give for the same rows, stored in selftest.json."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.selftest.outcomes import FAILED, PASSED, Check, describe_error, largest_deviation

SECTION = "reference numbers"


@cache
def read_stored() -> Mapping[str, Any]:
    """Return the content of selftest.json, which `python -m tests.selftest` writes.

    >>> sorted(read_stored())
    ['cases', 'claims', 'data', 'files', 'pages', 'schema', 'sources', 'tests']
    """
    text = (files("trueodds") / "selftest.json").read_text(encoding="utf-8")
    stored: Mapping[str, Any] = json.loads(text)
    return stored


def decode_array(stored: Mapping[str, Any]) -> Array:
    """Return an array, which is stored as 64-bit numbers or as integers that are to be divided by a power of ten.

    >>> decode_array({"shape": [2], "dtype": "<i1", "decimals": 2, "base64": "GUs="}).tolist()
    [0.25, 0.75]
    """
    data = np.frombuffer(base64.b64decode(stored["base64"]), stored["dtype"])
    return data.reshape(stored["shape"]) / 10.0 ** stored["decimals"]


@cache
def decode_rows(name: str) -> Predictions:
    """Return the predictions of one of the stored sets of rows."""
    stored = read_stored()["data"][name]
    if "votes" in stored:
        outcomes: Any = decode_array(stored["votes"])
    else:
        outcomes = np.array([int(digit) for digit in stored["labels"]])
    p = decode_array(stored["p"])
    if stored["scale"] == "log odds":
        p = expit(p) if p.ndim == 1 else softmax(p, axis=1)
    return Predictions(outcomes, p)


def evaluate_case(case: Mapping[str, Any]) -> list[float]:
    """Return the numbers of a case as trueodds computes them here."""
    preds = decode_rows(case["data"])
    functions: Mapping[str, Callable[..., Any]] = {
        "estimators": to.measure,
        "tests": to.test,
        "calibrators": to.fit,
    }
    run = functions[case["family"]]
    if case["family"] != "calibrators":
        omitted = {"interval": None} if case["family"] == "estimators" else {"progress": False}
        result = run(preds, case["method"], **omitted | case["settings"])
        return [float(_select(result, path)) for path in case["paths"]]
    calibrator = run(preds, case["method"], **case["settings"])
    points = decode_rows(case["points"]).p
    q = calibrator.predict_proba(points if points.ndim == 2 else np.stack([1 - points, points], axis=1))
    return [float(number) for number in (q[:, 1] if points.ndim == 1 else q).ravel()]


def _select(result: Any, path: str) -> Any:
    """Return the part of a result at a path such as ``parts/mcb``: attributes, or keys of mappings."""
    for name in path.split("/"):
        result = result[name] if isinstance(result, Mapping) else getattr(result, name)
    return result


def check_case(case: Mapping[str, Any], sources: Sequence[str]) -> Check:
    """Compare one case with its stored values."""
    name = f"{case['method']} · {case['name']}"
    methods = tuple(f"{case['family']}:{method}" for method in (case["method"], *case.get("also", ())))
    source = sources[case["source"]]
    rtol, atol = case.get("rtol", 0.0), case.get("atol", 0.0)
    try:
        values = evaluate_case(case)
    except (InputError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as problem:
        return Check(SECTION, name, FAILED, describe_error(problem), source, methods)
    deviation, shown, expected = largest_deviation(values, case["expected"], rtol, atol)
    tolerance = " and ".join([f"{rtol:g} (relative)"] * bool(rtol) + [f"{atol:g} (absolute)"] * bool(atol))
    detail = f"{shown}, expected {expected}; the largest deviation is {deviation:.1g} times the tolerance, {tolerance}"
    return Check(SECTION, name, PASSED if deviation <= 1 else FAILED, detail, source, methods)


def check_reference_numbers(progress: Callable[[float], None]) -> Iterator[Check]:
    """Compare all cases; `progress` gets the share that is done."""
    stored = read_stored()
    for done, case in enumerate(stored["cases"]):
        progress(done / len(stored["cases"]))
        yield check_case(case, stored["sources"])
