"""Scores of recalibrated networks on one split, and tables of their means over splits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

from trueodds.api.fit import fit
from trueodds.api.test import test
from trueodds.core.results import Verdict
from trueodds.data.predictions import Predictions
from trueodds_studies.common.network_predictions import CIFAR10_CLASSES
from trueodds_studies.common.recalibration_methods import (
    METHODS,
    MIN_PROB,
    RecalibrationMethod,
    method_rows,
    sqrt_bin_count,
)
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import format_count, format_range

ON_P = RecalibrationMethod("evidential (Xu) on p", "evidential", {"on": "probabilities"})
ALL_METHODS = (*METHODS, ON_P)
"""The methods of `METHODS`, and the evidential method on the probabilities instead of their logarithms."""

CLASSWISE_METHODS = ("temperature on log p", "MCLLO")  # methods after which every class is tested
WITH_ZEROS = ("none", "binning")  # methods whose probabilities contain zeros, for which min_prob is varied


def measure_split(learn: Predictions, held_out: Predictions) -> dict[str, Any]:
    """Fit all methods on the rows `learn` of one split and evaluate them on the others; results are JSON-compatible.

    `learning` is the row of no recalibration on the fitted rows, `methods` has a row per method, `left` the p-values of
    the classes after recalibration, and `floors` the effect of the smallest probability.
    """
    recalibrated = {
        method.label: _recalibrate(method, learn, held_out)
        for method in ALL_METHODS
        if method.label in (*CLASSWISE_METHODS, *WITH_ZEROS)
    }
    verdicts = {
        "learning": test(learn, "mcllo", min_prob=MIN_PROB),
        "held out": test(held_out, "mcllo", min_prob=MIN_PROB),
    }
    return {
        "learning": dict(method_rows(learn, learn, METHODS[:1])[0]),  # no recalibration needs no other rows
        "methods": [dict(row) for row in method_rows(learn, held_out, ALL_METHODS)],
        "statistics": {part: verdict.statistic for part, verdict in verdicts.items()},
        "parameters": {part: estimate_parameters(verdict) for part, verdict in verdicts.items()},
        "left": {
            name: _class_pvalues(test(recalibrated[name], "mcllo", min_prob=MIN_PROB)) for name in CLASSWISE_METHODS
        },
        "floors": [{"method": name, **vary_min_prob(recalibrated[name])} for name in WITH_ZEROS],
    }


def estimate_parameters(verdict: Verdict) -> list[dict[str, float | None]]:
    """δ and γ of each class against the last, with standard errors; that of δ is δ times that of τ = log δ.

    At the maximum, this equals the result of inverting the Hessian in δ, as in the paper.
    """
    rows = []
    for part in _class_parts(verdict):
        row = {"delta": part["delta"], "delta_se": part["delta"] * part["tau_se"]}
        row |= {"gamma": part["gamma"], "gamma_se": part["gamma_se"]}
        rows.append({name: value if math.isfinite(value) else None for name, value in row.items()})
    return rows


def vary_min_prob(preds: Predictions) -> dict[str, Any]:
    """Number of zeros, and the test with a tenth of MIN_PROB, MIN_PROB, and ten times it as smallest probability."""
    assert preds.y is not None  # labels, no votes
    row: dict[str, Any] = {
        "zeros": int((preds.P == 0).sum()),
        "outcomes at 0": int((preds.P[np.arange(preds.n), preds.y] == 0).sum()),
        "smallest above 0": float(preds.P[preds.P > 0].min()),
        "rows below": int((preds.P < MIN_PROB).any(axis=1).sum()),
    }
    for min_prob in (MIN_PROB / 10, MIN_PROB, MIN_PROB * 10):
        verdict = test(preds, "mcllo", min_prob=min_prob)
        row |= {f"statistic at {min_prob:g}": verdict.statistic, f"p at {min_prob:g}": verdict.pvalue}
    return row


def _recalibrate(method: RecalibrationMethod, learn: Predictions, held_out: Predictions) -> Predictions:
    """The held-out rows, recalibrated by a method that is fitted on the rows `learn`."""
    calibrator = fit(learn, method.name, **method.settings)
    assert held_out.y is not None  # labels, no votes
    return Predictions(held_out.y, calibrator.predict_proba(held_out))


def _class_pvalues(verdict: Verdict) -> list[float | None]:
    """Holm's adjusted p-value of each class except the last."""
    return [part["holm"] if math.isfinite(part["holm"]) else None for part in _class_parts(verdict)]


def _class_parts(verdict: Verdict) -> list[dict[str, float]]:
    """Parameters and p-value of each class except the last, the baseline."""
    return [dict(part) for name, part in verdict.parts.items() if name.startswith("class:")]


ALPHA = 0.05  # the level at which a p-value counts as a rejection


def mean_with_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error; an infinite value makes the mean infinite, and one value alone has no error.

    >>> mean_with_error([1.0, 2.0, 3.0])[0], round(mean_with_error([1.0, 2.0, 3.0])[1], 4)
    (2.0, 0.5774)
    >>> mean_with_error([1.0, float("inf")])
    (inf, None)
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return sum(values) / len(values), None
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def false_rejection_rate(learned: int, held_out: int, k: int, level: float = ALPHA) -> float:
    r"""Probability that a correctly specified map is rejected on held-out rows because its parameters are estimates.

    The likelihood ratio there is :math:`(\hat\theta_2 - \hat\theta_1)^\top H_2 (\hat\theta_2 - \hat\theta_1)`, so
    that it follows (1 + n₂/n₁) χ², not χ².

    >>> round(false_rejection_rate(8000, 2000, 10), 3)
    0.187
    """
    df = 2 * (k - 1)
    return float(chdtrc(df, chdtri(df, level) / (1 + held_out / learned)))


def method_means(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network and method: means over splits with standard errors; changes are paired differences."""
    return tuple(
        _mean_row(net, net_cells, method)
        for net, net_cells in _cells_by_network(cells)
        for method in range(len(ALL_METHODS))
    )


def _mean_row(net: str, cells: Sequence[Row], method: int) -> Row:
    """Means over the splits of one network for the method with this index."""
    rows = [cell["methods"][method] for cell in cells]
    before = [cell["methods"][0] for cell in cells]  # without recalibration
    row: dict[str, Any] = {
        "network": net,
        "method": rows[0]["method"],
        "n": rows[0]["n"],
        "median p": float(np.median([run["p"] for run in rows])),
        "rejected": sum(run["p"] <= ALPHA for run in rows) / len(rows),
    }
    row["ECE"], row["ECE ±"] = mean_with_error([run["ECE"] for run in rows])
    row["log loss"], row["log loss ±"] = mean_with_error([run["log loss"] for run in rows])
    row["gain"], row["gain ±"] = mean_with_error(_differences(before, rows, "log loss"))
    row["accuracy"], row["accuracy ±"] = mean_with_error([run["accuracy"] for run in rows])
    row["accuracy change"], row["accuracy change ±"] = mean_with_error(_differences(rows, before, "accuracy"))
    row["ECE change"], row["ECE change ±"] = mean_with_error(_differences(rows, before, "ECE"))
    row["changed"], row["changed ±"] = mean_with_error([run["changed"] for run in rows])
    return row


def _differences(rows: Sequence[Row], others: Sequence[Row], name: str) -> list[float]:
    """Paired differences of a column, one per split."""
    return [one[name] - other[name] for one, other in zip(rows, others, strict=True)]


def short_table(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of `method_means` with the standard error in the same column as the mean."""
    return tuple(
        {
            "network": row["network"],
            "method": row["method"],
            "median p": row["median p"],
            "rejected": f"{row['rejected']:.0%}",
            "ECE": _format_with_error(row, "ECE", 1, 4),
            "log loss": _format_with_error(row, "log loss", 1, 4),
            "gain": _format_with_error(row, "gain", 1, 4),
            "accuracy %": _format_with_error(row, "accuracy", 100, 2),
            "change of accuracy": _format_with_error(row, "accuracy change", 100, 2),
            "labels changed %": _format_with_error(row, "changed", 100, 2),
        }
        for row in rows
    )


def _format_with_error(row: Row, name: str, unit: float, digits: int) -> str:
    """A column multiplied by `unit`, with its standard error if there is one."""
    value, error = row[name], row[f"{name} ±"]
    text = f"{unit * value:.{digits}f}"
    return text if error is None else f"{text} ± {unit * error:.{digits}f}"


METHODS_LEGEND = """Means over {splits} of the same images, {learn:,} for fitting and {n:,} held out; n: held out. ±:
standard error of the mean over splits (of paired differences for changes); it measures the variation between splits,
not between images. p: MCLLO's likelihood-ratio test on the held-out rows, smallest probability {min_prob:g}; rejected:
share of splits with p ≤ 0.05. A correctly specified map with estimated parameters would be rejected in {anyway:.1%}.
ECE: confidence, {bins} bins (√n). gain: log loss before minus after, in nats per row, −inf if an observed outcome had
probability 0. changed: share of images whose predicted class changes."""


def methods_legend(cells: Sequence[Row]) -> str:
    """The legend of the table of methods, with numbers of rows and splits."""
    n, learn = cells[0]["methods"][0]["n"], cells[0]["learning"]["n"]
    splits = len({cell["split"] for cell in cells})
    rejection_rate = false_rejection_rate(learn, n, len(CIFAR10_CLASSES))
    return METHODS_LEGEND.format(
        splits=format_count(splits, "random split"),
        learn=learn,
        n=n,
        min_prob=MIN_PROB,
        anyway=rejection_rate,
        bins=sqrt_bin_count(n),
    )


def summarize(rows: Sequence[Row]) -> str:
    """In words, the gain in log loss of MCLLO and temperature scaling, how often they are rejected, and the ECE."""
    nets, phrases = list(dict.fromkeys(row["network"] for row in rows)), []
    for method in ("MCLLO", "temperature on log p"):
        method_rows = [row for row in rows if row["method"] == method]
        share = sum(row["rejected"] for row in method_rows) / len(method_rows)
        phrases.append(
            f"{method} {_describe_gains([row['gain'] for row in method_rows])} and is rejected in {share:.0%} of splits"
        )
    before, after = (
        format_range((row["ECE"] for row in rows if row["method"] == method), between="–")
        for method in ("none", "MCLLO")
    )
    subject = f"Over {len(nets)} networks," if len(nets) > 1 else f"{nets[0]}:"
    return f"{subject} {'; '.join(phrases)}. MCLLO changes the ECE from {before} to {after}."


def _describe_gains(gains: Sequence[float]) -> str:
    """The range of gains in nats, or of losses if all gains are negative."""
    if max(gains) < 0:
        return f"loses {format_range(-gain for gain in gains)} nats"
    return f"gains {format_range(gains)} nats"


def parameter_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network and class: δ and γ of the first split on both parts, and the range of γ over splits."""
    rows = []
    for net, net_cells in _cells_by_network(cells):
        for j, name in enumerate(CIFAR10_CLASSES[:-1]):
            row: dict[str, Any] = {"network": net, "class": name}
            for part, suffix in (("learning", ""), ("held out", ", held out")):
                estimates = net_cells[0]["parameters"][part][j]
                row |= {f"δ{suffix}": estimates["delta"], f"δ ±{suffix}": estimates["delta_se"]}
                row |= {f"γ{suffix}": estimates["gamma"], f"γ ±{suffix}": estimates["gamma_se"]}
            gammas = [cell["parameters"]["learning"][j]["gamma"] for cell in net_cells]
            row |= {
                "minimum γ": min(filter(None, gammas), default=None),
                "maximum γ": max(filter(None, gammas), default=None),
            }
            rows.append(row)
    return tuple(rows)


def summarize_slopes(rows: Sequence[Row]) -> str:
    """In words, the range of the slopes γ; below 1, a network is overconfident for a class."""
    slopes = [row["γ"] for row in rows if row["γ"] is not None]
    if not slopes:
        return "No finite slopes exist: the outcomes are separated."
    nets = list(dict.fromkeys(row["network"] for row in rows))
    subject = "Every network" if len(nets) > 1 else nets[0]
    prefix = f"{subject} is overconfident for every class: " if max(slopes) < 1 and len(slopes) == len(rows) else ""
    return f"{prefix}γ is {format_range(slopes, 2)} on the rows used for fitting."


def rejected_class_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network and method: share of splits in which each class is still rejected by its own test."""
    rows = []
    for net, net_cells in _cells_by_network(cells):
        for method in CLASSWISE_METHODS:
            row: dict[str, Any] = {"network": net, "method": method}
            for j, name in enumerate(CIFAR10_CLASSES[:-1]):
                pvalues = [cell["left"][method][j] for cell in net_cells]
                row[name] = sum(p is not None and p <= ALPHA for p in pvalues) / len(pvalues)
            rows.append(row)
    return tuple(rows)


def min_prob_table(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per network and method with zeros, for the first split: zeros, and the test by smallest probability."""
    return tuple(
        {"network": net, **row} for net, net_cells in _cells_by_network(cells) for row in net_cells[0]["floors"]
    )


def _cells_by_network(cells: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Each network with its cells, one per split."""
    for net in dict.fromkeys(cell["net"] for cell in cells):
        yield net, [cell for cell in cells if cell["net"] == net]
