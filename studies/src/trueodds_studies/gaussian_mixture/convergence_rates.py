"""Exponents with which bias and variance of binned errors change with rows and bins, by regression of logarithms."""

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

MIN_ROWS_PER_BIN = 20  # with fewer rows per bin, the asymptotic exponents do not hold yet
MAX_BINS = 127  # largest number of bins for which the bias by binning is computed


@dataclass(frozen=True)
class LogLogFit:
    """Slopes of a log-log regression with standard errors, and the number of points."""

    slopes: tuple[float, ...]  # one per regressor
    errors: tuple[float, ...]  # their standard errors
    points: int


def fit_log_log(values: Sequence[float] | Array, *regressors: Sequence[float] | Array) -> LogLogFit | None:
    """Regress log values on the logs of the regressors by least squares; None with too few points for standard errors.

    >>> fit = fit_log_log([4.0, 1.0, 0.25, 0.0625], [1.0, 2.0, 4.0, 8.0])
    >>> round(fit.slopes[0], 9), fit.points
    (-2.0, 4)
    """
    y = np.log(np.asarray(values, dtype=np.float64))
    x = np.stack(
        [np.ones(len(y)), *(np.log(np.asarray(regressor, dtype=np.float64)) for regressor in regressors)], axis=1
    )
    degrees_of_freedom = len(y) - x.shape[1]
    if degrees_of_freedom < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    inverse = np.linalg.inv(x.T @ x)
    coefficients = inverse @ x.T @ y
    variance = float(np.square(y - x @ coefficients).sum() / degrees_of_freedom)
    errors = np.sqrt(variance * np.diag(inverse)[1:])
    return LogLogFit(tuple(coefficients[1:].tolist()), tuple(errors.tolist()), len(y))


def noise_bias(row: Row, model: LogisticModel) -> float:
    """The bias by noise: mean estimate minus its limit for infinitely many rows."""
    return float(row["bias"] + true_error(model) - binned_limit(model, row["kind"], row["bins"]))


def fit_exponents(estimates: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Exponents of bias by noise, bias by binning and variance, for every model and partition.

    `estimates` has one row per model, number of rows, partition and number of bins, as of `flatten_estimates`.
    """
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(row["model"] for row in estimates):
        model = find_model(name)
        for kind in PARTITION_KINDS:
            kind_rows = [row for row in estimates if (row["model"], row["kind"]) == (name, kind)]
            if model.slope == 0:  # all predictions are equal, so there is one occupied bin for any number of bins
                kind_rows = [row for row in kind_rows if row["bins"] == kind_rows[0]["bins"]]
            large_n = [row for row in kind_rows if row["n"] >= MIN_ROWS_PER_BIN * row["bins"]]
            fine = large_n if model.calibrated else [row for row in large_n if has_narrow_bins(row)]
            excess = [(row, noise_bias(row, model)) for row in fine]
            excess = [(row, value) for row, value in excess if value > 0]
            power = 0.5 if model.calibrated else 1.0
            rows.append(
                _exponent_row(name, kind, "bias by noise", [value for _, value in excess], [row for row, _ in excess])
                | {"expected n": -power}
                | ({"expected bins": power} if model.slope else {})
            )
            if not model.calibrated:
                rows += fit_binning_bias(model, kind)
            rows.append(
                _exponent_row(name, kind, "variance", [row["sd"] ** 2 for row in large_n], large_n)
                | {"expected n": -1.0}
                | ({"expected bins": 0.0} if model.slope else {})
            )
    return tuple(rows)


def has_narrow_bins(row: Row) -> bool:
    """Whether there are at least 2 n^(1/3) bins: narrower than the range near the crossing where noise flips signs."""
    return bool(row["bins"] ** 3 >= 8 * row["n"])


def binning_biases(model: LogisticModel, kind: str) -> dict[int, float]:
    """By number of bins, from 2 to MAX_BINS: the bias by binning, true error minus limit, by quadrature."""
    by_bins = {k: true_error(model) - binned_limit(model, kind, k) for k in range(2, MAX_BINS + 1)}
    return {k: gap for k, gap in by_bins.items() if gap > 1e-12}


def octave_averages(by_bins: Mapping[int, float]) -> dict[float, float]:
    """Mean biases over 2 and 3 bins, over 4 to 7, and so on, by the geometric mean of the numbers of bins.

    The bias by binning depends on the positions of the edges; a mean over many numbers of bins hardly does.
    """
    means: dict[float, float] = {}
    for power in range(1, int(math.log2(MAX_BINS + 1))):
        octave = [k for k in range(2**power, 2 ** (power + 1)) if k in by_bins]
        if octave:
            geometric_mean = float(np.exp(np.log(octave).mean()))
            means[geometric_mean] = float(np.mean([by_bins[k] for k in octave]))
    return means


def fit_binning_bias(model: LogisticModel, kind: str) -> list[dict[str, Any]]:
    """Two rows with the exponent of the bias by binning in the number of bins: of single numbers, and of octaves."""
    biases = binning_biases(model, kind)
    rows = []
    for what, shown in (("bias by binning", biases), ("bias by binning, octaves", octave_averages(biases))):
        row: dict[str, Any] = {"model": model.name, "partition": kind, "quantity": what, "cells": len(shown)}
        trend = fit_log_log(list(shown.values()), list(shown))
        if trend is not None:
            row |= {"exponent of bins": trend.slopes[0], "se bins": trend.errors[0], "expected bins": -2.0}
        rows.append(row)
    return rows


def _exponent_row(model: str, kind: str, what: str, values: Sequence[float], rows: Sequence[Row]) -> dict[str, Any]:
    """A row with the exponents of the values in n and in the number of bins, whichever vary between the rows."""
    entry: dict[str, Any] = {"model": model, "partition": kind, "quantity": what, "cells": len(rows)}
    regressors = {name: [row[name] for row in rows] for name in ("n", "bins")}
    varied = [name for name, column in regressors.items() if len(set(column)) > 1]
    trend = fit_log_log(values, *(regressors[name] for name in varied)) if varied else None
    if trend is not None:
        for name, slope, se in zip(varied, trend.slopes, trend.errors, strict=True):
            entry |= {f"exponent of {name}": slope, f"se {name}": se}
    return entry


def balancing_exponent(rates: Sequence[Row], kind: str) -> tuple[float, float] | None:
    """The a for which with n^a bins the bias by noise and the bias by binning decrease at the same rate in n.

    If the biases are n^s bins^t and bins^u, they are n^(s + t a) and n^(u a) with n^a bins, so that a = −s / (t − u).
    Returns a with its standard error by the delta method; None if an exponent is not known.
    """
    by_quantity = {(row["model"], row["quantity"]): row for row in rates if row["partition"] == kind}
    noise = by_quantity.get(("perfect", "bias by noise"), {})
    binning = by_quantity.get(("uncalibrated", "bias by binning, octaves"), {})
    if "exponent of n" not in noise or "exponent of bins" not in noise or "exponent of bins" not in binning:
        return None
    s, t, u = noise["exponent of n"], noise["exponent of bins"], binning["exponent of bins"]
    a = -s / (t - u)
    errors = (noise["se n"] / (t - u), a * noise["se bins"] / (t - u), a * binning["se bins"] / (t - u))
    return a, math.hypot(*errors)


def bin_count_rule_table(estimates: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """One row per partition, rule ⌈n^a⌉ and model: exponents of bias and RMSE in n, and their values at max n."""
    rows_by_key = {(row["model"], row["kind"], row["n"], row["bins"]): row for row in estimates}
    names = [name for name in dict.fromkeys(row["model"] for row in estimates) if find_model(name).slope != 0]
    rows: list[dict[str, Any]] = []
    for kind in PARTITION_KINDS:
        for power in (0.0, *plan.powers):
            for name in names:
                bins = [FIXED_BINS if power == 0 else rule_bin_count(n, power) for n in plan.sizes]
                cells = [rows_by_key[name, kind, n, k] for n, k in zip(plan.sizes, bins, strict=True)]
                rmse = [math.hypot(row["bias"], row["sd"]) for row in cells]
                bias_fit = fit_log_log([abs(row["bias"]) for row in cells], plan.sizes)
                rmse_fit = fit_log_log(rmse, plan.sizes)
                entry: dict[str, Any] = {"partition": kind, "a": round(power, 4), "model": name}
                if bias_fit is not None and rmse_fit is not None:
                    entry |= {"bias exponent": bias_fit.slopes[0], "se": bias_fit.errors[0]}
                    entry |= {"expected": expected_bias_exponent(power, find_model(name).calibrated)}
                    entry |= {"rmse exponent": rmse_fit.slopes[0], "se rmse": rmse_fit.errors[0]}
                last = {"n": plan.sizes[-1], "bins": bins[-1], "bias": cells[-1]["bias"], "rmse": rmse[-1]}
                rows.append(entry | last)
    return tuple(rows)


FIXED_BINS = 15  # number of bins of the rule a = 0


def expected_bias_exponent(a: float, calibrated: bool) -> float:
    """The expected exponent of the bias in n with n^a bins.

    The bias of a calibrated model is proportional to (bins/n)^(1/2), else to bins^(−2) or bins/n, whichever is slower.

    >>> expected_bias_exponent(0.2, True), expected_bias_exponent(0.2, False)
    (-0.4, -0.4)
    """
    return (a - 1) / 2 if calibrated else max(-2 * a, a - 1) + 0.0  # no −0


def summarize_rates(rates: Sequence[Row]) -> str:
    """In words, the exponents and the a for which both biases decrease at the same rate."""
    phrases = []
    quantities = (
        ("bias by noise", "perfect", "The bias by noise of the perfect model varies"),
        ("bias by noise", "uncalibrated", "For the uncalibrated one, it varies"),
        ("bias by binning", "uncalibrated", "Its bias by binning varies"),
        ("bias by binning, octaves", "uncalibrated", "On average over octaves of the number of bins, that varies"),
    )
    for what, model, words in quantities:
        selected = [
            row for row in rates if (row["quantity"], row["model"]) == (what, model) and "exponent of bins" in row
        ]
        if selected:
            factors = (
                [f"n^({format_range((row['exponent of n'] for row in selected), 2)})"]
                if "exponent of n" in selected[0]
                else []
            )
            factors.append(f"bins^({format_range((row['exponent of bins'] for row in selected), 2)})")
            phrases.append(f"{words} as {' and '.join(factors)}.")
    variances = [row["exponent of n"] for row in rates if row["quantity"] == "variance" and "exponent of n" in row]
    if variances:
        phrases.append(f"Variances vary as n^({format_range(variances, 2)}).")
    balanced_a = [
        (kind, balanced) for kind in PARTITION_KINDS if (balanced := balancing_exponent(rates, kind)) is not None
    ]
    if balanced_a:
        text = ", ".join(f"{kind} {a:.3f} ± {se:.3f}" for kind, (a, se) in balanced_a)
        phrases.append(f"Both biases decrease at the same rate with n^a bins for a = {text}.")
    return " ".join(phrases)


def summarize_rules(rows: Sequence[Row]) -> str:
    """In words, the best rule of each partition by the larger error of the two models at the largest n."""
    phrases = []
    for kind in dict.fromkeys(row["partition"] for row in rows):
        larger_rmse: dict[float, float] = {}
        for row in rows:
            if row["partition"] == kind:
                larger_rmse[row["a"]] = max(larger_rmse.get(row["a"], 0.0), row["rmse"])
        a = min(larger_rmse, key=lambda power: larger_rmse[power])
        phrases.append(
            f"{kind} a = {a:.2g} ({larger_rmse[a]:.4f}; a = {max(larger_rmse):.2g}:"
            f" {larger_rmse[max(larger_rmse)]:.4f})"
        )
    return (
        f"At n = {rows[0]['n']:,} the larger root mean squared error of the two models is smallest for "
        + ", ".join(phrases)
        + "."
    )
