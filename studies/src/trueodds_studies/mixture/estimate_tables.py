"""The tables of the study of the Gaussian mixture, and the sentences above them, made of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy.special import expit

from trueodds_studies.base import span
from trueodds_studies.mixture.rates import balance
from trueodds_studies.mixture.simulation import Plan
from trueodds_studies.mixture.truth import KINDS, MODELS, between, error, known, limit, population_edges
from trueodds_studies.resumable_runs import Row

SHOWN = (1, 2, 3, 5, 10, 15, 20, 40, 100)  # numbers of bins in the table of the bound


def flat(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row for each model, number of rows, partition and number of bins, without the single estimates."""
    return tuple(
        {"model": cell["model"], "n": cell["n"]} | {key: value for key, value in row.items() if key != "values"}
        for cell in cells
        for row in cell["estimates"]
    )


def estimates(rows: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """What is drawn, as numbers: uniform bins beside trees; a model whose bins are all one has one line for all."""
    at = {(row["model"], row["n"], row["kind"], row["bins"]): row for row in rows}
    table = []
    for name in dict.fromkeys(row["model"] for row in rows):
        one = known(name).second == 0
        for n in (n for n in plan.sizes if n in plan.drawn_sizes):
            for bins in plan.drawn_bins[:1] if one else plan.drawn_bins:
                entry: dict[str, Any] = {"model": name, "n": n, "bins": "any" if one else str(bins)}
                for kind in ("uniform", "tree"):
                    row = at[name, n, kind, bins]
                    entry |= {f"{kind} {key}": row[key] for key in ("mean", "sd", "above")}
                    entry[f"{kind} limit"] = limit(known(name), kind, bins)
                table.append(entry | {"truth": error(known(name))})
    return tuple(table)


def bound(rows: Sequence[Row], plan: Plan) -> tuple[dict[str, Any], ...]:
    """What bins show of endless rows, beside the truth: for two distances, and the mean estimate of many rows."""
    model = MODELS["uncalibrated"]
    n = plan.sizes[-1]
    at = {(row["kind"], row["bins"]): row for row in rows if row["model"] == model.name and row["n"] == n}
    table = []
    for kind in KINDS:
        for bins in SHOWN:
            tv, square = (limit(model, kind, bins, distance) for distance in ("tv", "sq-euclidean"))
            entry: dict[str, Any] = {"partition": kind, "bins": bins, "limit": tv, "hidden": error(model) - tv}
            entry |= {"squared limit": square, "squared hidden": error(model, "sq-euclidean") - square}
            if (kind, bins) in at:
                row = at[kind, bins]
                entry |= {f"mean at {n}": error(model) + row["bias"], "se": row["bias se"]}
            table.append(entry | {"crossing": _around(population_edges(model, kind, bins))})
    cut = (crossing(),)
    tv, square = (between(model, cut, distance) for distance in ("tv", "sq-euclidean"))
    last = {"partition": "an edge at the crossing", "bins": 2, "limit": tv, "hidden": error(model) - tv}
    last |= {"squared limit": square, "squared hidden": error(model, "sq-euclidean") - square}
    return (*table, last)


def crossing() -> float:
    """The prediction of the uncalibrated model that is right.

    >>> round(crossing(), 4)
    0.6608
    """
    return float(expit(2 / 3))  # 1 + x = −2x at x = −1/3


def _around(edges: Sequence[float]) -> str:
    low = max((edge for edge in edges if edge < crossing()), default=0.0)
    high = min((edge for edge in edges if edge > crossing()), default=1.0)
    return f"({low:.4g}, {high:.4g}]"


def sentence(rows: Sequence[Row], plan: Plan) -> str:
    """How far estimates lie from the truth, too high and too low."""
    phrases = []
    for name in dict.fromkeys(row["model"] for row in rows):
        truth, model_rows = error(known(name)), [row for row in rows if row["model"] == name]
        text = f"{name}: the truth is {truth:.5f}, mean estimates are {span((row['mean'] for row in model_rows), 4)}"
        if truth > 0:
            many = [row for row in model_rows if row["n"] == plan.sizes[-1]]
            high, low = (pick(model_rows, key=lambda row: row["bias"]) for pick in (max, min))
            text += f", biased by up to {high['bias']:+.4f} ({_where(high)}) and {low['bias']:+.4f} ({_where(low)})"
            text += (
                f"; at n = {plan.sizes[-1]:,} {span((row['above'] for row in many), 2)} of the estimates are too large"
            )
        else:
            text += f"; {span((row['above'] for row in model_rows), 2)} of the estimates are too large"
        phrases.append(text)
    return ". ".join(phrases) + "."


def _where(row: Row) -> str:
    return f"{row['kind']}, {row['bins']} bins, n = {row['n']:,}"


def of_the_bound(rows: Sequence[Row]) -> str:
    """The strict inequality in numbers."""
    strict = [row for row in rows if row["hidden"] > 1e-9]
    phrases = [f"{row['bins']}: {row['hidden']:.2g}" for row in rows if row["partition"] == "uniform"]
    return (
        f"Of {len(rows)} partitions {len(strict)} show less than the truth {error(MODELS['uncalibrated']):.5f} however many rows"
        f" there are. Uniform bins hide, by their number: {', '.join(phrases)}. An edge at {crossing():.4f}, where the"
        f" model is right, hides {abs(rows[-1]['hidden']):.1g} of it, and {rows[-1]['squared hidden']:.3f} of the squared distance."
    )


def of_rates(rates: Sequence[Row]) -> str:
    """The exponents, and which rule balances."""
    phrases = []
    quantities = (
        ("chance adds", "perfect", "What chance adds in the perfect model goes"),
        ("chance adds", "uncalibrated", "In the uncalibrated one it goes"),
        ("bins hide", "uncalibrated", "What bins hide of its error goes"),
        ("bins hide, octaves", "uncalibrated", "On average over octaves of their number that goes"),
    )
    for what, model, words in quantities:
        selected = [row for row in rates if (row["what"], row["model"]) == (what, model) and "per bins" in row]
        if selected:
            factors = [f"n to the {span((row['per n'] for row in selected), 2)}"] if "per n" in selected[0] else []
            factors.append(f"bins to the {span((row['per bins'] for row in selected), 2)}")
            phrases.append(f"{words} as {' and '.join(factors)}.")
    variances = [row["per n"] for row in rates if row["what"] == "variance" and "per n" in row]
    if variances:
        phrases.append(f"Variances go as n to the {span(variances, 2)}.")
    even = [(kind, balanced) for kind in KINDS if (balanced := balance(rates, kind)) is not None]
    if even:
        text = ", ".join(f"{kind} {a:.3f} ± {se:.3f}" for kind, (a, se) in even)
        phrases.append(f"Both biases fall alike with n^a bins for a = {text}.")
    return " ".join(phrases)


def of_rules(rows: Sequence[Row]) -> str:
    """Which rule has the least of the greater errors of the two models."""
    phrases = []
    for kind in dict.fromkeys(row["partition"] for row in rows):
        worst: dict[float, float] = {}
        for row in rows:
            if row["partition"] == kind:
                worst[row["a"]] = max(worst.get(row["a"], 0.0), row["rmse"])
        a = min(worst, key=lambda power: worst[power])
        phrases.append(f"{kind} a = {a:.2g} ({worst[a]:.4f}; a = {max(worst):.2g}: {worst[max(worst)]:.4f})")
    return (
        f"At n = {rows[0]['n']:,} the greater root mean squared error of the models is least for "
        + ", ".join(phrases)
        + "."
    )
