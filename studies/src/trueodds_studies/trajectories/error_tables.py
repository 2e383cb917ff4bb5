"""What does the study show? The paper's figure in numbers, errors apart, ranking, test of 0, best bins, other worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.trajectories.collected import Trajectories
from trueodds_studies.trajectories.estimator_variants import COUNTS, LENSES, VARIANTS
from trueodds_studies.trajectories.simulation import PARTITIONS

AT = (30, 88, 259, 759, 2229)  # sizes that the pages show, or those next to them
CUT = 500  # where the paper's figure ends
ROUGH = 0.005  # by which a lower bound on finer bins exceeds the bracket of a curve that is not smooth


def shown(sizes: Sequence[int]) -> list[int]:
    """The numbers of the sizes nearest to AT."""
    return sorted({int(np.argmin(np.abs(np.log(np.array(sizes) / n)))) for n in AT})


def figure(of: Trajectories) -> tuple[dict[str, Any], ...]:
    """The paper's fifteen, and 0: the median over trajectories of the 95th percentile of |estimate − truth|, with limits.

    Also the mean rank among the fifteen over the sizes of the paper's figure.
    """
    rows = []
    for lens in LENSES:
        labels = [label for label in of.labels(lens) if VARIANTS[label].kind in ("zero", "paper", "swapped")]
        values, low, high = of.limits(np.stack([of.stat(lens, label, "p95") for label in labels], axis=-1))
        fifteen = [i for i, label in enumerate(labels) if VARIANTS[label].kind == "paper"]
        cut = [i for i, n in enumerate(of.sizes) if n < CUT]
        ranks = (np.argsort(np.argsort(values[np.ix_(cut, fifteen)], axis=1), axis=1) + 1).mean(axis=0)
        for j, label in enumerate(labels):
            row: dict[str, Any] = {"lens": lens, "estimator": label}
            row["mean rank"] = float(ranks[fifteen.index(j)]) if j in fifteen else None
            for i in range(len(of.sizes)):
                row[str(of.sizes[i])] = float(values[i, j])
                row[f"{of.sizes[i]} low"], row[f"{of.sizes[i]} high"] = float(low[i, j]), float(high[i, j])
            rows.append(row)
    return tuple(rows)


def short(rows: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> tuple[dict[str, Any], ...]:
    """The figure for a page: few sizes, best first, limits in brackets."""
    table = []
    for row in sorted(rows, key=lambda row: (row["lens"] != LENSES[0], row["mean rank"] or 99)):
        one = {"lens": row["lens"], "estimator": row["estimator"], "mean rank": row["mean rank"]}
        for n in (str(sizes[i]) for i in shown(sizes)):
            one[f"n = {n}"] = f"{row[n]:.3f} [{row[f'{n} low']:.3f}, {row[f'{n} high']:.3f}]"
        table.append(one)
    return tuple(table)


def errors(of: Trajectories) -> tuple[dict[str, Any], ...]:
    """Every member at every size: bias, standard deviation, RMSE and p95 apart; medians over trajectories."""
    rows = []
    for lens in LENSES:
        zero = of.rmse(lens, "0")
        for label in of.labels(lens):
            target = VARIANTS[label].target
            named = {
                "bias": of.stat(lens, label, "bias"),
                "sd": of.stat(lens, label, "sd"),
                "p95": of.stat(lens, label, "p95"),
            }
            named |= {"RMSE": of.rmse(lens, label), "RMSE calibrated": of.rmse(lens, label, calibrated=True)}
            truth = of.truth(lens, "l2" if target == "l2" else "l1")[:, None]
            named["relative"] = named["RMSE"] / np.maximum(truth, 1e-4)
            named["beats 0"] = (named["RMSE"] < (truth if target == "l2" else zero)).astype(np.float64)
            power, order = of.stat(lens, label, "power").mean(axis=0), of.right(lens, label).mean(axis=0)
            if VARIANTS[label].slow:  # of few draws no quantile has the level of the others'
                power = np.full_like(power, np.nan)
            for i, n in enumerate(of.sizes):
                row: dict[str, Any] = {"lens": lens, "estimator": label, "target": target, "n": n}
                for name, values in named.items():
                    lacks = np.isnan(values[:, i]).any() or (name == "beats 0" and np.isnan(named["RMSE"][:, i]).any())
                    row[name] = None if lacks else float((np.mean if name == "beats 0" else np.median)(values[:, i]))
                row["power"], row["in order"] = (None if np.isnan(x[i]) else float(x[i]) for x in (power, order))
                rows.append(row)
    return tuple(row for row in rows if row["in order"] is not None)


def bins(of: Trajectories, every: int) -> tuple[dict[str, Any], ...]:
    """The number of bins with the least median RMSE by size, and the exponent with which it grows, with limits."""
    sizes, rows = of.sizes[::every], []
    for lens in LENSES:
        for partition in PARTITIONS:
            table = of.bins(lens, partition)
            if not table.size:
                return ()
            complete = ~np.isnan(table).any(axis=0)
            table = np.where(np.isnan(table), np.inf, table)

            def optimal_bins(x: Array, axis: int, complete: Any = complete) -> Array:
                counts = np.array(COUNTS)[np.where(complete, np.median(x, axis=axis), np.inf).argmin(axis=-1)]
                slope = np.polyfit(np.log(sizes), np.log(counts), 1)[0] if len(sizes) > 1 else np.nan
                return np.append(counts, slope)

            value, low, high = of.limits(table, optimal_bins)
            se = float(np.std([optimal_bins(table[sample], 0)[-1] for sample in of.samples], ddof=1))
            row: dict[str, Any] = {"lens": lens, "partition": partition, "exponent": float(value[-1]), "se": se}
            row |= {"exponent low": float(low[-1]), "exponent high": float(high[-1])}
            row |= {f"n = {n}": int(value[i]) for i, n in enumerate(sizes)}
            rows.append(row)
    return tuple(rows)


def worlds(of: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """The members that need no many settings in every world, at the sizes of the page: truth, bias, RMSE, beside 0."""
    rows = []
    for world, trajectories in of.items():
        for lens in LENSES:
            truth = float(np.median(trajectories.truth(lens)))
            for i in shown(trajectories.sizes):
                named = {
                    label: float(np.median(trajectories.rmse(lens, label)[:, i]))
                    for label in _of_l1(trajectories, lens, i)
                }
                winner = min((label for label in named if label != "0"), key=lambda label: named[label])
                row: dict[str, Any] = {
                    "world": world,
                    "lens": lens,
                    "n": trajectories.sizes[i],
                    "truth": truth,
                    "0": named["0"],
                }
                row |= {"best": winner, "RMSE of best": named[winner]}
                row |= {
                    label: named.get(label)
                    for label in ("ece", "ece debiased", "ece_linear", "ece_linear debiased", "debiased_l1")
                }
                rows.append(row)
    return tuple(rows)


def _of_l1(of: Trajectories, lens: str, i: int) -> list[str]:
    known = (label for label in of.labels(lens) if VARIANTS[label].target == "l1" and VARIANTS[label].kind != "swapped")
    return [label for label in known if not np.isnan(of.rmse(lens, label)[:, i]).any()]


def truths(of: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """How exact the truth is: the width of the bracket, what the authors' 2,000 bins would say, and what finer bins see."""
    rows = []
    for world, trajectories in of.items():
        for lens in LENSES:
            l1, low, high, legacy, fine = (trajectories.truth(lens, x) for x in ("l1", "low", "high", "legacy", "fine"))
            rows.append({
                "world": world, "lens": lens, "trajectories": len(l1), "truth": float(np.median(l1)),
                "least": float(l1.min()), "most": float(l1.max()), "half width": float(np.median(high - low) / 2),
                "widest": float((high - low).max() / 2), "2000 bins": float(np.median(legacy - l1)),
                "rough": float((fine > high + ROUGH).mean()), "finer": float(np.median(fine)), "l2": float(np.median(trajectories.truth(lens, "l2"))),
            })  # fmt: skip
    return tuple(rows)
