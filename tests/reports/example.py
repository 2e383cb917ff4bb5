"""A hand-made audit of schema trueodds.audit/1, with every kind of entry, for tests of what shows it."""

from __future__ import annotations

import copy
from typing import Any

from trueodds.reports.audit_result import AuditResult

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30"><path d="M2 28 L38 2" stroke="black"/></svg>'
PICTURES = [PICTURE, PICTURE, None]


typed = AuditResult.from_dict


def example() -> dict[str, Any]:
    """A fresh copy, so that a test may change it."""
    return copy.deepcopy(_AUDIT)


def unremarkable() -> dict[str, Any]:
    """An audit that found nothing and of which much was not computed."""
    audit = example()
    audit["verdict"] = {
        "sentence": "No evidence of miscalibration: predicts 71 % on average, is right 71 % of the time.",
        "state": "no evidence",
        "rejected": False,
        "reason": "family-wise p 0.412 > 0.05",
        "pvalue": 0.412,
        "min_pvalue": 0.001,
        "alpha": 0.05,
    }
    audit["recalibration"] |= {
        "chosen": "identity",
        "confirmed": False,
        "outcome": "no gain",
        "applied": "identity",
        "gain": 0.0,
        "gain_percent": 0.0,
        "gain_se": None,
        "gain_low": None,
        "pvalue": None,
        "log_loss_after": 0.6123,
        "accuracy_after": 0.9611,
        "map_text": "identity",
    }
    audit["groups"], audit["among_groups"] = [], None
    audit["notes"] = []
    return audit


def _part(statistic: float, pvalue: float, holm: float, noise_floor: float) -> dict[str, float]:
    return {"statistic": statistic, "pvalue": pvalue, "holm": holm, "noise_floor": noise_floor}


def _estimate(estimator: str, lens: str, value: float | None, **more: Any) -> dict[str, Any]:
    return {
        "schema": "trueodds.estimate/1",
        "estimator": estimator,
        "lens": lens,
        "value": value,
        "interval": None,
        "noise_floor": None,
        "debiased": None,
        "parts": {},
        "n": 899,
        "settings": {},
        "notes": [],
    } | more


def _verdict(lens: str, statistic: float, pvalue: float, **more: Any) -> dict[str, Any]:
    return {
        "schema": "trueodds.verdict/1",
        "test": "consistency",
        "lens": lens,
        "statistic": statistic,
        "pvalue": pvalue,
        "min_pvalue": 0.001,
        "family_pvalue": None,
        "effect": None,
        "parts": {},
        "n": 899,
        "null": "labels drawn independently from the predicted probabilities, predictions kept fixed",
        "settings": {"statistic": "ece", "redraw": "labels", "resamples": 999},
        "notes": [],
    } | more


_BY_CLASS = {
    "class:0": _part(0.0153, 0.001, 0.010, 0.0061),
    "class:1": _part(0.0612, 0.001, 0.010, 0.0142),
    "class:2": _part(0.0337, 0.001, 0.010, 0.0113),
    "class:3": _part(0.0481, 0.001, 0.010, 0.0139),
    "class:4": _part(0.0344, 0.001, 0.010, 0.0109),
    "class:5": _part(0.0405, 0.001, 0.010, 0.0128),
    "class:6": _part(0.0208, 0.001, 0.010, 0.0087),
    "class:7": _part(0.0392, 0.001, 0.010, 0.0117),
    "class:8": _part(0.0733, 0.001, 0.010, 0.0155),
    "class:9": _part(0.0517, 0.042, 0.042, 0.0144),
}


def _interval(low: float, high: float, method: str = "sun") -> dict[str, Any]:
    return {"low": low, "high": high, "level": 0.95, "method": method}


_EDGES = [i / 15 for i in range(16)]
_PREDICTED = [0.1921, 0.2384, 0.3045, 0.3671, 0.4338, 0.5012, 0.5667, 0.6349, 0.7004, 0.7663, 0.8341, 0.8990, 0.9658]
_OBSERVED = [0.3333, 0.5000, 0.6111, 0.7222, 0.8500, 0.9074, 0.9412, 0.9737, 0.9889, 0.9903, 1.0, 1.0, 1.0]
_ROWS = [3, 8, 18, 36, 60, 54, 68, 76, 90, 103, 121, 142, 120]
_RELIABILITY = {
    "view": ["confidence"] * 13,
    "low": _EDGES[2:15],
    "high": _EDGES[3:16],
    "n": _ROWS,
    "mean_prediction": _PREDICTED,
    "outcome_rate": _OBSERVED,
    "interval_low": [max(0.0, s - 0.11) for s in _OBSERVED],
    "interval_high": [min(1.0, s + 0.05) for s in _OBSERVED],
}
_CLASSES = [str(i) for i in range(10)]
_CLASSWISE = {
    "view": [f"class:{c}" for c in _CLASSES for _ in range(3)],
    "low": [0.0, 1 / 3, 2 / 3] * 10,
    "high": [1 / 3, 2 / 3, 1.0] * 10,
    "n": [700 - i for i in range(30)],
    "mean_prediction": [0.05 + 0.45 * (i % 3) + 0.001 * i for i in range(30)],
    "outcome_rate": [0.01 + 0.47 * (i % 3) + 0.001 * i for i in range(30)],
}
_MURPHY = {"theta": [0.1, 0.5, 0.9], "score": [0.0123, None, 0.0345]}

_AUDIT: dict[str, Any] = {
    "schema": "trueodds.audit/1",
    "version": "0.1.0",
    "data": {
        "source": "digits.parquet",
        "n": 899,
        "k": 10,
        "kind": "classes",
        "classes": _CLASSES,
        "accuracy": 0.9611,
        "mean_confidence": 0.7104,
        "weighted": False,
        "weight": 899.0,
        "votes": False,
        "clusters": None,
        "group_columns": ["site"],
        "resolution": "exact: every row in memory",
        "zeros": 1213,
        "true_class_zeros": 2,
    },
    "verdict": {
        "sentence": "Underconfident: predicts 71 % on average, is right 96 % of the time. Calibration rejected "
        "(family-wise p ≤ 0.001). Temperature scaling (T = 0.38) reduces the log loss by 61.7 % (at least 54.2 %), "
        "confirmed on held-out rows.",
        "state": "underconfident",
        "rejected": True,
        "reason": "family-wise p 0.001 <= 0.05",
        "pvalue": 0.001,
        "min_pvalue": 0.001,
        "alpha": 0.05,
    },
    "measures": [
        _estimate("brier", "canonical", 0.1847, interval=_interval(0.1741, 0.1953, "bca"), noise_floor=0.4022),
        _estimate("log_loss", "canonical", None),
        _estimate(
            "ece",
            "confidence",
            0.2507,
            interval=_interval(0.2391, 0.2625),
            noise_floor=0.0318,
            debiased=0.2488,
            settings={"partition": "uniform 15", "distance": "tv", "order": 1.0, "occupied_bins": 13},
            notes=[{"code": "TN105", "text": "2 of 13 occupied bins hold fewer than 10 rows."}],
        ),
        _estimate(
            "ece",
            "classwise",
            0.0418,
            noise_floor=0.0119,
            parts={name: part["statistic"] for name, part in _BY_CLASS.items()},
            settings={"partition": "uniform 15", "aggregate": "mean"},
        ),
        _estimate(
            "ece",
            "canonical",
            0.2533,
            interval=_interval(0.2388, 0.2679),
            noise_floor=0.1032,
            settings={"partition": "median-variance, min_size 10"},
        ),
    ],
    "standard_measures": [
        {
            "name": "calibration_slope",
            "value": 0.71,
            "interval": {"low": 0.6, "high": 0.82, "level": 0.95, "method": "normal"},
            "ideal": 1.0,
        },
    ],
    "tests": [
        _verdict(
            "family",
            0.2507,
            0.001,
            family_pvalue=0.001,
            effect=0.2189,
            parts={"confidence": _part(0.2507, 0.001, 0.003, 0.0318), "canonical": _part(0.2533, 0.001, 0.003, 0.1032)},
        ),
        _verdict("confidence", 0.2507, 0.001, effect=0.2189),
        _verdict("classwise", 0.0418, 0.001, family_pvalue=0.001, effect=0.0299, parts=_BY_CLASS),
        _verdict("canonical", 0.2533, 0.001, effect=0.1501),
    ],
    "recalibration": {
        "candidates": [
            {
                "method": "identity",
                "parameters": "unchanged",
                "log_loss": 0.4127,
                "brier": 0.1848,
                "difference": 0.2566,
                "se": 0.0102,
                "chosen": False,
                "label_flips": 0,
                "accuracy_change": 0.0,
            },
            {
                "method": "temperature",
                "parameters": "T = 0.38",
                "log_loss": 0.1561,
                "brier": 0.0612,
                "difference": 0.0,
                "se": 0.0,
                "chosen": True,
                "label_flips": 0,
                "accuracy_change": 0.0,
            },
            {
                "method": "mcllo",
                "parameters": "20 numbers",
                "log_loss": 0.1593,
                "brier": 0.0620,
                "difference": 0.0032,
                "se": 0.0119,
                "chosen": False,
                "label_flips": 4,
                "accuracy_change": -0.0011,
            },
            {
                "method": "isotonic",
                "parameters": None,
                "log_loss": 0.1873,
                "brier": None,
                "difference": None,
                "se": None,
                "chosen": False,
                "label_flips": None,
                "accuracy_change": None,
                "dropped": True,
            },
        ],
        "chosen": "temperature",
        "confirmed": True,
        "outcome": "confirmed",
        "applied": "temperature",
        "mixing": 0.0016,
        "min_prob": 1e-12,
        "alpha": 0.05,
        "gain": 0.2541,
        "gain_of": "method",
        "gain_percent": 61.7,
        "gain_se": 0.0188,
        "gain_low": 0.2232,
        "gain_low_percent": 54.2,
        "gain_high": 0.2850,
        "required_rows": None,
        "pvalue": 0.0007,
        "detectable_gain": 0.0402,
        "log_loss_before": 0.4119,
        "log_loss_after": 0.1578,
        "accuracy_before": 0.9630,
        "accuracy_after": 0.9630,
        "label_flips": 0,
        "rows": {"fit": 899, "confirm": 899},
        "map_text": "T = 0.38",
        "notes": [{"code": "TN501", "text": "Every fit is mixed with 1/630 of the uniform distribution."}],
    },
    "decisions": None,
    "groups": [
        {
            "column": "site",
            "value": "north",
            "label": "site=north",
            "n": 512,
            "accuracy": 0.9668,
            "mean_prob": 0.7057,
            "event_rate": 0.9668,
            "error": 0.2611,
            "interval": _interval(0.2457, 0.2766),
            "noise_floor": 0.0421,
            "pvalue": 0.001,
            "joint": 0.001,
            "min_detectable": 0.0633,
            "status": "miscalibrated",
            "direction": "under",
        },
        {
            "column": "site",
            "value": "south",
            "label": "site=south",
            "n": 387,
            "accuracy": 0.9535,
            "mean_prob": 0.7166,
            "event_rate": 0.9535,
            "error": 0.2369,
            "interval": None,
            "noise_floor": 0.0487,
            "pvalue": 0.001,
            "joint": 0.001,
            "min_detectable": 0.0718,
            "status": "miscalibrated",
            "direction": "under",
        },
    ],
    "among_groups": {
        "pvalue": 0.001,
        "min_pvalue": 0.001,
        "correction": "step-down min-p",
        "min_effect": 0.05,
        "level": 0.95,
        "alpha": 0.05,
        "worst": "site=north",
        "unexamined": [],
        "widest": [
            {
                "column": "site",
                "first": "site=north",
                "second": "site=south",
                "difference": 0.0242,
                "interval": _interval(0.0, 0.0513, "simultaneous"),
                "settled": False,
            }
        ],
        "multicalibration": {
            "value": 0.2519,
            "sigma": 17.4,
            "pvalue": 0.001,
            "worst": "all rows",
            "noise_floor": 0.0212,
        },
    },
    "diagrams": [
        {
            "diagram": "reliability",
            "lens": "confidence",
            "table": _RELIABILITY,
            "settings": {"partition": "uniform 15", "level": 0.95},
            "notes": [],
        },
        {"diagram": "reliability", "lens": "classwise", "table": _CLASSWISE, "settings": {"level": 0.95}, "notes": []},
        {"diagram": "murphy", "lens": "confidence", "table": _MURPHY, "settings": {}, "notes": []},
    ],
    "settings": {"alpha": 0.05, "seed": 0, "resamples": 999},
    "notes": [{"code": "TN101", "text": "2 observed outcomes had predicted probability 0."}],
}
