"""What do many splits say together? Means with standard errors, of each method, class and floor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

from trueodds_studies.base import counted, span
from trueodds_studies.comparators import MIN_PROB, bins
from trueodds_studies.imaging.nets import CLASSES
from trueodds_studies.imaging.split_results import EVERY, LEFT
from trueodds_studies.resumable_runs import Row

AT = 0.05  # the level at which a p-value counts as a rejection


def mean(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard error; an infinite value makes the mean infinite, and one value alone has no error.

    >>> mean([1.0, 2.0, 3.0])[0], round(mean([1.0, 2.0, 3.0])[1], 4)
    (2.0, 0.5774)
    >>> mean([1.0, float("inf")])
    (inf, None)
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return sum(values) / len(values), None
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def rejected_anyway(learned: int, held_out: int, k: int, level: float = AT) -> float:
    r"""How often a map of the right kind is rejected on rows it has not seen, because its parameters are estimates.

    The likelihood ratio there is :math:`(\hat\theta_2 - \hat\theta_1)^\top H_2 (\hat\theta_2 - \hat\theta_1)`, so
    that it follows (1 + n₂/n₁) χ², not χ².

    >>> round(rejected_anyway(8000, 2000, 10), 3)
    0.187
    """
    df = 2 * (k - 1)
    return float(chdtrc(df, chdtri(df, level) / (1 + held_out / learned)))


def method_means(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net and method: means over splits, each with its standard error, changes against no fix paired."""
    return tuple(_mean_row(net, net_cells, i) for net, net_cells in _by_net(cells) for i in range(len(EVERY)))


def _mean_row(net: str, cells: Sequence[Row], i: int) -> Row:
    rows, before = [cell["methods"][i] for cell in cells], [cell["methods"][0] for cell in cells]
    row: dict[str, Any] = {
        "net": net,
        "method": rows[0]["method"],
        "n": rows[0]["n"],
        "median p": float(np.median([run["p"] for run in rows])),
        "rejected": sum(run["p"] <= AT for run in rows) / len(rows),
    }
    row["ECE"], row["ECE ±"] = mean([run["ECE"] for run in rows])
    row["log loss"], row["log loss ±"] = mean([run["log loss"] for run in rows])
    row["gain"], row["gain ±"] = mean(_change(before, rows, "log loss"))
    row["accuracy"], row["accuracy ±"] = mean([run["accuracy"] for run in rows])
    row["accuracy change"], row["accuracy change ±"] = mean(_change(rows, before, "accuracy"))
    row["ECE change"], row["ECE change ±"] = mean(_change(rows, before, "ECE"))
    row["changed"], row["changed ±"] = mean([run["changed"] for run in rows])
    return row


def _change(rows: Sequence[Row], others: Sequence[Row], name: str) -> list[float]:
    return [one[name] - other[name] for one, other in zip(rows, others, strict=True)]


def short(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The same for a page: each mean with its standard error."""
    return tuple(
        {
            "net": row["net"],
            "method": row["method"],
            "median p": row["median p"],
            "rejected": f"{row['rejected']:.0%}",
            "ECE": _with_error(row, "ECE", 1, 4),
            "log loss": _with_error(row, "log loss", 1, 4),
            "gain": _with_error(row, "gain", 1, 4),
            "accuracy %": _with_error(row, "accuracy", 100, 2),
            "change of accuracy": _with_error(row, "accuracy change", 100, 2),
            "labels changed %": _with_error(row, "changed", 100, 2),
        }
        for row in rows
    )


def _with_error(row: Row, name: str, unit: float, digits: int) -> str:
    value, error = row[name], row[f"{name} ±"]
    text = f"{unit * value:.{digits}f}"
    return text if error is None else f"{text} ± {unit * error:.{digits}f}"


LEGEND = """Means over {splits} of the same images, {learn:,} to learn from and {n:,} held out; n: held out. ±: standard error of
the mean over splits, for changes of the paired differences; it tells of the split's luck, not of other images. p: MCLLO's likelihood-
ratio test on the rows held out, floor {min_prob:g}; rejected: share of splits with p ≤ 0.05. A map of the right kind with estimated
parameters would be rejected in {anyway:.1%}. ECE: confidence, {bins} bins (√n). gain: log loss before less after, nats per row, −inf
where a method gave an outcome probability 0. changed: share of images whose label changes."""


def legend(cells: Sequence[Row]) -> str:
    """What the columns of the methods' table mean."""
    n, learn = cells[0]["methods"][0]["n"], cells[0]["learning"]["n"]
    splits = len({cell["split"] for cell in cells})
    anyway = rejected_anyway(learn, n, len(CLASSES))
    return LEGEND.format(
        splits=counted(splits, "random split"), learn=learn, n=n, min_prob=MIN_PROB, anyway=anyway, bins=bins(n)
    )


def sentence(rows: Sequence[Row]) -> str:
    """What MCLLO does to the nets, and what one temperature does."""
    nets, phrases = list(dict.fromkeys(row["net"] for row in rows)), []
    for method in ("MCLLO", "temperature on log p"):
        method_rows = [row for row in rows if row["method"] == method]
        share = sum(row["rejected"] for row in method_rows) / len(method_rows)
        phrases.append(
            f"{method} {_gains([row['gain'] for row in method_rows])} and is rejected in {share:.0%} of splits"
        )
    before, after = (
        span((row["ECE"] for row in rows if row["method"] == method), between=" … ") for method in ("none", "MCLLO")
    )
    where = f"Over {len(nets)} nets" if len(nets) > 1 else f"Of {nets[0]}:"
    return f"{where} {'; '.join(phrases)}. MCLLO takes the ECE from {before} to {after}."


def _gains(nats: Sequence[float]) -> str:
    if max(nats) < 0:
        return f"loses {span(-gain for gain in nats)} nats"
    return f"gains {span(nats)} nats"


def parameters_of(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net and class: the first split's δ and γ on both parts, and how far γ moves over splits."""
    rows = []
    for net, net_cells in _by_net(cells):
        for j, name in enumerate(CLASSES[:-1]):
            row: dict[str, Any] = {"net": net, "class": name}
            for part, after in (("learning", ""), ("held out", ", held out")):
                one = net_cells[0]["parameters"][part][j]
                row |= {f"δ{after}": one["delta"], f"δ ±{after}": one["delta_se"]}
                row |= {f"γ{after}": one["gamma"], f"γ ±{after}": one["gamma_se"]}
            gammas = [cell["parameters"]["learning"][j]["gamma"] for cell in net_cells]
            row |= {
                "least γ": min(filter(None, gammas), default=None),
                "most γ": max(filter(None, gammas), default=None),
            }
            rows.append(row)
    return tuple(rows)


def slopes_sentence(rows: Sequence[Row]) -> str:
    """What the slopes say: below 1 a net is too sure of a class."""
    slopes = [row["γ"] for row in rows if row["γ"] is not None]
    if not slopes:
        return "No slopes are best: the outcomes are separated."
    nets = list(dict.fromkeys(row["net"] for row in rows))
    who = "Every net" if len(nets) > 1 else nets[0]
    prefix = f"{who} is too sure of every class: " if max(slopes) < 1 and len(slopes) == len(rows) else ""
    return f"{prefix}γ is {span(slopes, 2)} on the rows learned from."


def left_of(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net and method: in which share of splits each class is still rejected by its own test."""
    rows = []
    for net, net_cells in _by_net(cells):
        for method in LEFT:
            row: dict[str, Any] = {"net": net, "method": method}
            for j, name in enumerate(CLASSES[:-1]):
                pvalues = [cell["left"][method][j] for cell in net_cells]
                row[name] = sum(p is not None and p <= AT for p in pvalues) / len(pvalues)
            rows.append(row)
    return tuple(rows)


def floors_of(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per net and method, of the first split."""
    return tuple({"net": net, **row} for net, net_cells in _by_net(cells) for row in net_cells[0]["floors"])


def _by_net(cells: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for net in dict.fromkeys(cell["net"] for cell in cells):
        yield net, [cell for cell in cells if cell["net"] == net]
