"""Tables of estimation errors by number of rows, the best number of bins, and the recommended estimators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.estimators.estimator_variants import BIN_COUNTS, LENSES, VARIANTS
from trueodds_studies.estimators.simulation import PARTITIONS

STATS = ("bias", "sd", "p95", "mean0", "sd0", "power")


@dataclass(frozen=True)
class Trajectories:
    """The cells of one world; all trajectories in the order of their cells."""

    cells: Sequence[Row]
    sizes: tuple[int, ...]
    boots: int
    seed: int

    @cached_property
    def names(self) -> list[tuple[int, int, int]]:
        """The distribution of each trajectory."""
        return [(c["k"], c["d"], c["number"]) for c in self.cells for _ in c["models"]]

    @cached_property
    def samples(self) -> list[Array]:
        """Trajectories of distributions drawn with replacement, all those of one distribution together (dependent)."""
        return _bootstrap_samples(self.names, self.boots, self.seed)

    def labels(self, lens: str) -> list[str]:
        """The members of a lens."""
        return list(self.cells[0]["models"][0]["lenses"][lens]["members"])

    def stat(self, lens: str, label: str, name: str) -> Array:
        """A number of every trajectory at every size (trajectories, sizes), NaN where there is none."""
        at = STATS.index(name)
        values = [[s[at] for s in m["lenses"][lens]["members"][label]] for c in self.cells for m in c["models"]]
        return np.array(values, dtype=np.float64)

    def rmse(self, lens: str, label: str, *, calibrated: bool = False) -> Array:
        """The root mean square error, from its two parts; where the model is calibrated the truth is 0."""
        bias, sd = ("mean0", "sd0") if calibrated else ("bias", "sd")
        return np.hypot(self.stat(lens, label, bias), self.stat(lens, label, sd))

    def truth(self, lens: str, name: str = "l1") -> Array:
        """A number about the truth of every trajectory."""
        return np.array([m["lenses"][lens]["truth"][name] for c in self.cells for m in c["models"]])

    def bins(self, lens: str, partition: str) -> Array:
        """The RMSE of ECE by number of bins, (trajectories, sizes, counts)."""
        values = [m["lenses"][lens]["bins"][partition] for c in self.cells for m in c["models"]]
        return np.array(values, dtype=np.float64)

    def right(self, lens: str, label: str) -> Array:
        """How often pairs of models are put in order, (cells, sizes); the mean over the pairs that differ."""
        means = []
        for c in self.cells:
            pairs = [p["right"][label] for p in c["ranks"][lens] if p["gap"]]
            some = np.array(pairs, dtype=np.float64).reshape(len(pairs), len(self.sizes))
            means.append(some.mean(axis=0) if len(pairs) else np.full(len(self.sizes), np.nan))
        return np.array(means)

    def limits(self, values: Array, statistic: Callable[..., Any] = np.median) -> tuple[Array, Array, Array]:
        """A statistic along the first axis with 95 % limits; the axis has all trajectories, or all cells."""
        samples = self.samples
        if len(values) != len(self.names):
            samples = _bootstrap_samples([(c["k"], c["d"], c["number"]) for c in self.cells], self.boots, self.seed)
        drawn = np.array([statistic(values[sample], axis=0) for sample in samples])
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        return np.asarray(statistic(values, axis=0)), low, high


def _bootstrap_samples(names: Sequence[tuple[int, int, int]], boots: int, seed: int) -> list[Array]:
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(name, []).append(i)
    indices = [np.array(group) for group in groups.values()]
    rng = np.random.default_rng([seed, 5])
    return [np.concatenate([indices[i] for i in rng.integers(0, len(indices), len(indices))]) for _ in range(boots)]


SHOWN_SIZES = (30, 88, 259, 759, 2229)  # sizes that the pages show, or those next to them
MIN_FIT_ROWS = 500  # where the paper's figure ends
MAX_BOUND_WIDTH = 0.005  # by which a lower bound on finer bins exceeds the bracket of a curve that is not smooth


def values_at_shown_sizes(sizes: Sequence[int]) -> list[int]:
    """The numbers of the sizes nearest to AT."""
    return sorted({int(np.argmin(np.abs(np.log(np.array(sizes) / n)))) for n in SHOWN_SIZES})


def percentile_table(of: Trajectories) -> tuple[dict[str, Any], ...]:
    """The paper's fifteen and 0: median over trajectories of the 95th percentile of |estimate − truth|, with limits.

    Also the mean rank among the fifteen over the sizes of the paper's figure.
    """
    rows = []
    for lens in LENSES:
        labels = [label for label in of.labels(lens) if VARIANTS[label].kind in ("zero", "paper", "swapped")]
        values, low, high = of.limits(np.stack([of.stat(lens, label, "p95") for label in labels], axis=-1))
        fifteen = [i for i, label in enumerate(labels) if VARIANTS[label].kind == "paper"]
        cut = [i for i, n in enumerate(of.sizes) if n < MIN_FIT_ROWS]
        ranks = (np.argsort(np.argsort(values[np.ix_(cut, fifteen)], axis=1), axis=1) + 1).mean(axis=0)
        for j, label in enumerate(labels):
            row: dict[str, Any] = {"lens": lens, "estimator": label}
            row["mean rank"] = float(ranks[fifteen.index(j)]) if j in fifteen else None
            for i in range(len(of.sizes)):
                row[str(of.sizes[i])] = float(values[i, j])
                row[f"{of.sizes[i]} low"], row[f"{of.sizes[i]} high"] = float(low[i, j]), float(high[i, j])
            rows.append(row)
    return tuple(rows)


def short_percentile_table(rows: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> tuple[dict[str, Any], ...]:
    """The figure for a page: few sizes, best first, limits in brackets."""
    table = []
    for row in sorted(rows, key=lambda row: (row["lens"] != LENSES[0], row["mean rank"] or 99)):
        one = {"lens": row["lens"], "estimator": row["estimator"], "mean rank": row["mean rank"]}
        for n in (str(sizes[i]) for i in values_at_shown_sizes(sizes)):
            one[f"n = {n}"] = f"{row[n]:.3f} [{row[f'{n} low']:.3f}, {row[f'{n} high']:.3f}]"
        table.append(one)
    return tuple(table)


def error_table(of: Trajectories) -> tuple[dict[str, Any], ...]:
    """Bias, standard deviation, RMSE, and p95 of every estimator at every size; medians over trajectories."""
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


def bin_count_table(of: Trajectories, every: int) -> tuple[dict[str, Any], ...]:
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
                counts = np.array(BIN_COUNTS)[np.where(complete, np.median(x, axis=axis), np.inf).argmin(axis=-1)]
                slope = np.polyfit(np.log(sizes), np.log(counts), 1)[0] if len(sizes) > 1 else np.nan
                return np.append(counts, slope)

            value, low, high = of.limits(table, optimal_bins)
            se = float(np.std([optimal_bins(table[sample], 0)[-1] for sample in of.samples], ddof=1))
            row: dict[str, Any] = {"lens": lens, "partition": partition, "exponent": float(value[-1]), "se": se}
            row |= {"exponent low": float(low[-1]), "exponent high": float(high[-1])}
            row |= {f"n = {n}": int(value[i]) for i, n in enumerate(sizes)}
            rows.append(row)
    return tuple(rows)


def worlds_table(of: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """The best estimator and some common ones in every world at the sizes of the page: truth and RMSE, also of 0."""
    rows = []
    for world, trajectories in of.items():
        for lens in LENSES:
            truth = float(np.median(trajectories.truth(lens)))
            for i in values_at_shown_sizes(trajectories.sizes):
                named = {
                    label: float(np.median(trajectories.rmse(lens, label)[:, i]))
                    for label in _has_l1_target(trajectories, lens, i)
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


def _has_l1_target(of: Trajectories, lens: str, i: int) -> list[str]:
    known = (label for label in of.labels(lens) if VARIANTS[label].target == "l1" and VARIANTS[label].kind != "swapped")
    return [label for label in known if not np.isnan(of.rmse(lens, label)[:, i]).any()]


def truth_table(of: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """Accuracy of the truth: width of the bracket, the value for the authors' 2,000 bins, and that for finer bins."""
    rows = []
    for world, trajectories in of.items():
        for lens in LENSES:
            l1, low, high, legacy, fine = (trajectories.truth(lens, x) for x in ("l1", "low", "high", "legacy", "fine"))
            rows.append(
                {
                    "world": world,
                    "lens": lens,
                    "trajectories": len(l1),
                    "truth": float(np.median(l1)),
                    "least": float(l1.min()),
                    "most": float(l1.max()),
                    "half width": float(np.median(high - low) / 2),
                    "widest": float((high - low).max() / 2),
                    "2000 bins": float(np.median(legacy - l1)),
                    "rough": float((fine > high + MAX_BOUND_WIDTH).mean()),
                    "finer": float(np.median(fine)),
                    "l2": float(np.median(trajectories.truth(lens, "l2"))),
                }
            )
    return tuple(rows)


SIZE_BANDS = ((30, 100), (100, 500), (500, 1500), (1500, 5000))
PURPOSES = ("single number", "ranking", "test of 0")
DEFAULTS = ("ece", "ece_linear", "ece_kde", "debiased_l1")  # of which the numbers are shown
DEFAULT_VARIANTS = {label for label, variant in VARIANTS.items() if variant.kind == "ours" and not variant.settings}
MAX_SHOWN = 5  # of those that cannot be told from the best


def recommendation_table(of: Trajectories) -> list[dict[str, Any]]:
    """One row per lens, band of sizes and purpose.

    Single number: least RMSE against the mean distance, the median over trajectories; the constant 0 takes part.
    Ranking: largest mean share of pairs in order. Test of 0: largest mean power at 5 %, of those that see all
    resamples. Over the sizes of a band the mean counts. Those are level with the best whose difference from it has 95 %
    limits, over distributions, that hold 0.
    """
    questions = [(lens, band, purpose) for lens in LENSES for band in SIZE_BANDS for purpose in PURPOSES]
    table = []
    for lens, (low, high), purpose in questions:
        at = [i for i, n in enumerate(of.sizes) if low <= n <= high]
        row = _recommend(of, lens, at, purpose) if at else None
        table += [{"lens": lens, "n": f"{low} to {high}", "purpose": purpose, **row}] if row else []
    return table


def _recommend(of: Trajectories, lens: str, at: Sequence[int], purpose: str) -> dict[str, Any] | None:
    values, average = _purpose_values(of, lens, at, purpose)
    if not values:
        return None
    names = list(values)
    sign = 1.0 if purpose == "single number" else -1.0
    table = np.stack([values[name] for name in names], axis=-1)  # (trajectories, sizes, members)
    first = int(np.argmin(sign * average(table, axis=0).mean(axis=0)))
    score, low, high = of.limits(table, lambda x, axis: _format_ties(average(x, axis=axis).mean(axis=0), first))
    (score, _), (low, below), (high, above) = score, low, high
    level = [names[i] for i in np.argsort(sign * score) if below[i] <= 0 <= above[i] and i != first]
    real = [i for i in np.argsort(sign * score) if names[i] != "0"]
    default_positions = {name: names.index(name) for name in DEFAULTS if name in names}
    default_texts = [
        f"{name} {score[i]:.3g}{' (level)' if name in level or i == first else ''}"
        for name, i in default_positions.items()
    ]
    return {
        "take": names[first],
        "value": float(score[first]),
        "low": float(low[first]),
        "high": float(high[first]),
        "level": (
            ", ".join(level[:MAX_SHOWN]) + (f" and {len(level) - MAX_SHOWN} more" if len(level) > MAX_SHOWN else "")
        ),
        "best but 0": names[real[0]],
        "its value": float(score[real[0]]),
        "defaults": ", ".join(default_texts),
        "agree": not DEFAULT_VARIANTS.isdisjoint({names[first], *level}),
    }


def _format_ties(score: Array, first: int) -> Array:
    return np.stack([score, score - score[first]])


def _purpose_values(of: Trajectories, lens: str, at: Sequence[int], purpose: str) -> tuple[dict[str, Array], Any]:
    """By member (trajectories or cells, sizes); those that have a number at each of these sizes."""
    values = {}
    for label in of.labels(lens):
        if VARIANTS[label].kind == "swapped" or (purpose == "single number" and VARIANTS[label].target != "l1"):
            continue
        if purpose == "test of 0" and VARIANTS[label].slow:  # of few draws no quantile has the level of the others'
            continue
        if purpose == "single number":
            every = of.rmse(lens, label)
        else:
            every = of.right(lens, label) if purpose == "ranking" else of.stat(lens, label, "power")
        selected = every[:, at]
        selected = selected[:, ~np.isnan(selected).all(axis=0)]
        expected = len(at) if purpose != "test of 0" else selected.shape[1]
        if selected.size and selected.shape[1] == expected and not np.isnan(selected).any():
            values[label] = selected
    n_sizes = max((v.shape[1] for v in values.values()), default=0)
    values = {label: v for label, v in values.items() if v.shape[1] == n_sizes}
    return values, np.median if purpose == "single number" else np.mean


def summarize_defaults(results: Sequence[dict[str, Any]]) -> str:
    """Whether the defaults of the library agree."""
    agree = [row for row in results if row["agree"]]
    away = [
        f"{row['purpose']} through {row['lens']}, n {row['n']}: {row['take']}" for row in results if not row["agree"]
    ]
    zero = sum(row["take"] == "0" for row in results if row["purpose"] == "single number")
    n_bands = sum(row["purpose"] == "single number" for row in results)
    text = f"In {len(agree)} of {len(results)} cases an estimator without settings is the best or level with it"
    text += f"; not for {'; '.join(away)}." if away else "."
    return f"{text} As a single number the constant 0 comes closest in {zero} of {n_bands} bands of sizes."
