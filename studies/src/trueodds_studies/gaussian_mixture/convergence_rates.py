"""Convergence rates of bias and variance in rows and bins, by least squares of logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_range
from trueodds_studies.gaussian_mixture.simulation import (
    PARTITION_KINDS,
    LogisticModel,
    Plan,
    binned_limit,
    find_model,
    rule_bin_count,
    true_error,
)

MIN_ROWS_PER_BIN = 20  # rows per bin below which the laws of many rows do not hold yet
MAX_BINS = 127  # bins of the quadrature


@dataclass(frozen=True)
class LogLogFit:
    """Slopes of a log-log regression with standard errors, and the number of points."""

    slopes: tuple[float, ...]
    errors: tuple[float, ...]
    points: int


def fit_log_log(values: Sequence[float] | Array, *regressors: Sequence[float] | Array) -> LogLogFit | None:
    """Log-log regression by least squares; None with too few points for a standard error.

    >>> fit = fit_log_log([4.0, 1.0, 0.25, 0.0625], [1.0, 2.0, 4.0, 8.0])
    >>> round(fit.slopes[0], 9), fit.points
    (-2.0, 4)
    """
    y = np.log(np.asarray(values, dtype=np.float64))
    x = np.stack(
        [np.ones(len(y)), *(np.log(np.asarray(regressor, dtype=np.float64)) for regressor in regressors)], axis=1
    )
    free = len(y) - x.shape[1]
    if free < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    inverse = np.linalg.inv(x.T @ x)
    at = inverse @ x.T @ y
    variance = float(np.square(y - x @ at).sum() / free)
    return LogLogFit(tuple(at[1:].tolist()), tuple(np.sqrt(variance * np.diag(inverse)[1:]).tolist()), len(y))


def noise_bias(row: Row, model: LogisticModel) -> float:
    """Mean estimate minus its limit for infinitely many rows."""
    return float(row["bias"] + true_error(model) - binned_limit(model, row["kind"], row["bins"]))


def fit_exponents(flat: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """For every model and partition: bias by noise, bias by binning, and variance."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(row["model"] for row in flat):
        model = find_model(name)
        for kind in PARTITION_KINDS:
            kind_rows = [row for row in flat if (row["model"], row["kind"]) == (name, kind)]
            if model.second == 0:  # ties are not parted: whatever their number, bins are one
                kind_rows = [row for row in kind_rows if row["bins"] == kind_rows[0]["bins"]]
            full = [row for row in kind_rows if row["n"] >= MIN_ROWS_PER_BIN * row["bins"]]
            fine = full if model.calibrated else [row for row in full if has_narrow_bins(row)]
            excess = [(row, noise_bias(row, model)) for row in fine]
            excess = [(row, value) for row, value in excess if value > 0]
            power = 0.5 if model.calibrated else 1.0
            rows.append(
                _exponent_row(name, kind, "chance adds", [value for _, value in excess], [row for row, _ in excess])
                | {"expected n": -power}
                | ({"expected bins": power} if model.second else {})
            )
            if not model.calibrated:
                rows += fit_binning_loss(model, kind)
            rows.append(
                _exponent_row(name, kind, "variance", [row["sd"] ** 2 for row in full], full)
                | {"expected n": -1.0}
                | ({"expected bins": 0.0} if model.second else {})
            )
    return tuple(rows)


def has_narrow_bins(row: Row) -> bool:
    """Whether there are at least 2 n^(1/3) bins: narrower than the range around the crossing where noise matters."""
    return bool(row["bins"] ** 3 >= 8 * row["n"])


def binning_losses(model: LogisticModel, kind: str) -> dict[int, float]:
    """Bias by binning for 2 to MOST bins, by quadrature, exact up to rounding."""
    by_bins = {k: true_error(model) - binned_limit(model, kind, k) for k in range(2, MAX_BINS + 1)}
    return {k: gap for k, gap in by_bins.items() if gap > 1e-12}


def octave_means(hides: Mapping[int, float]) -> dict[float, float]:
    """The mean over 2 and 3 bins, over 4 to 7, and so on, by the geometric mean of the bins.

    The bias by binning depends on the positions of the edges; a mean over many numbers of bins hardly does.
    """
    means: dict[float, float] = {}
    for power in range(1, int(math.log2(MAX_BINS + 1))):
        some = [k for k in range(2**power, 2 ** (power + 1)) if k in hides]
        if some:
            means[float(np.exp(np.log(some).mean()))] = float(np.mean([hides[k] for k in some]))
    return means


def fit_binning_loss(model: LogisticModel, kind: str) -> list[dict[str, Any]]:
    """Rate of the bias by binning in the number of bins, without and with averaging over octaves."""
    hides = binning_losses(model, kind)
    rows = []
    for what, shown in (("bins hide", hides), ("bins hide, octaves", octave_means(hides))):
        row: dict[str, Any] = {"model": model.name, "partition": kind, "what": what, "cells": len(shown)}
        trend = fit_log_log(list(shown.values()), list(shown))
        if trend is not None:
            row |= {"per bins": trend.slopes[0], "se bins": trend.errors[0], "expected bins": -2.0}
        rows.append(row)
    return rows


def _exponent_row(model: str, kind: str, what: str, values: Sequence[float], rows: Sequence[Row]) -> dict[str, Any]:
    entry: dict[str, Any] = {"model": model, "partition": kind, "what": what, "cells": len(rows)}
    regressors = {name: [row[name] for row in rows] for name in ("n", "bins")}
    varied = [name for name, column in regressors.items() if len(set(column)) > 1]
    trend = fit_log_log(values, *(regressors[name] for name in varied)) if varied else None
    if trend is not None:
        for name, slope, se in zip(varied, trend.slopes, trend.errors, strict=True):
            entry |= {f"per {name}": slope, f"se {name}": se}
    return entry


def balancing_exponent(rates: Sequence[Row], kind: str) -> tuple[float, float] | None:
    """The a of n^a bins for which bias by noise and bias by binning decrease at the same rate, with its standard error.

    n^(s + t a) against n^(u a): a = −s / (t − u), the error by the first derivatives.
    """
    by = {(row["model"], row["what"]): row for row in rates if row["partition"] == kind}
    adds, hides = by.get(("perfect", "chance adds"), {}), by.get(("uncalibrated", "bins hide, octaves"), {})
    if "per n" not in adds or "per bins" not in adds or "per bins" not in hides:
        return None
    s, t, u = adds["per n"], adds["per bins"], hides["per bins"]
    a = -s / (t - u)
    parts = (adds["se n"] / (t - u), a * adds["se bins"] / (t - u), a * hides["se bins"] / (t - u))
    return a, math.hypot(*parts)


def bin_count_rule_table(flat: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """For ⌈n^a⌉ bins: rates of bias and root mean squared error in n, and their values at the largest n."""
    at = {(row["model"], row["kind"], row["n"], row["bins"]): row for row in flat}
    names = [name for name in dict.fromkeys(row["model"] for row in flat) if find_model(name).second != 0]
    rows: list[dict[str, Any]] = []
    for kind in PARTITION_KINDS:
        for power in (0.0, *plan.powers):
            for name in names:
                bins = [FIXED_BINS if power == 0 else rule_bin_count(n, power) for n in plan.sizes]
                cells = [at[name, kind, n, k] for n, k in zip(plan.sizes, bins, strict=True)]
                rmse = [math.hypot(row["bias"], row["sd"]) for row in cells]
                bias, root = fit_log_log([abs(row["bias"]) for row in cells], plan.sizes), fit_log_log(rmse, plan.sizes)
                entry: dict[str, Any] = {"partition": kind, "a": round(power, 4), "model": name}
                if bias is not None and root is not None:
                    entry |= {"bias per n": bias.slopes[0], "se": bias.errors[0]}
                    entry |= {"expected": expected_exponents(power, find_model(name).calibrated)}
                    entry |= {"rmse per n": root.slopes[0], "se rmse": root.errors[0]}
                last = {"n": plan.sizes[-1], "bins": bins[-1], "bias": cells[-1]["bias"], "rmse": rmse[-1]}
                rows.append(entry | last)
    return tuple(rows)


FIXED_BINS = 15  # bins of the rule a = 0


def expected_exponents(a: float, calibrated: bool) -> float:
    """The exponent of the bias with n^a bins: (bins/n)^(1/2), or the slower of bins^(−2) and bins/n.

    >>> expected_exponents(0.2, True), expected_exponents(0.2, False)
    (-0.4, -0.4)
    """
    return (a - 1) / 2 if calibrated else max(-2 * a, a - 1) + 0.0  # no −0


def summarize_rates(rates: Sequence[Row]) -> str:
    """Summary of the exponents and of the balancing rule."""
    phrases = []
    quantities = (
        ("chance adds", "perfect", "The bias by noise of the perfect model varies"),
        ("chance adds", "uncalibrated", "For the uncalibrated one, it varies"),
        ("bins hide", "uncalibrated", "Its bias by binning varies"),
        ("bins hide, octaves", "uncalibrated", "On average over octaves of the number of bins, that varies"),
    )
    for what, model, words in quantities:
        selected = [row for row in rates if (row["what"], row["model"]) == (what, model) and "per bins" in row]
        if selected:
            factors = (
                [f"n to the {format_range((row['per n'] for row in selected), 2)}"] if "per n" in selected[0] else []
            )
            factors.append(f"bins to the {format_range((row['per bins'] for row in selected), 2)}")
            phrases.append(f"{words} as {' and '.join(factors)}.")
    variances = [row["per n"] for row in rates if row["what"] == "variance" and "per n" in row]
    if variances:
        phrases.append(f"Variances vary as n to the {format_range(variances, 2)}.")
    even = [(kind, balanced) for kind in PARTITION_KINDS if (balanced := balancing_exponent(rates, kind)) is not None]
    if even:
        text = ", ".join(f"{kind} {a:.3f} ± {se:.3f}" for kind, (a, se) in even)
        phrases.append(f"Both biases decrease at the same rate with n^a bins for a = {text}.")
    return " ".join(phrases)


def summarize_rules(rows: Sequence[Row]) -> str:
    """Summary of the rules by the larger error of the two models."""
    phrases = []
    for kind in dict.fromkeys(row["partition"] for row in rows):
        worst: dict[float, float] = {}
        for row in rows:
            if row["partition"] == kind:
                worst[row["a"]] = max(worst.get(row["a"], 0.0), row["rmse"])
        a = min(worst, key=lambda power: worst[power])
        phrases.append(f"{kind} a = {a:.2g} ({worst[a]:.4f}; a = {max(worst):.2g}: {worst[max(worst)]:.4f})")
    return (
        f"At n = {rows[0]['n']:,} the larger root mean squared error of the two models is smallest for "
        + ", ".join(phrases)
        + "."
    )
