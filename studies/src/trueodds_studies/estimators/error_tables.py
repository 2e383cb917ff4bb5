"""Tables of estimation errors by number of rows, of the best number of bins, and of recommended estimators."""

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

STATS = ("bias", "sd", "p95", "mean0", "sd0", "power")  # the numbers of `simulation._error_stats`, in their order


@dataclass(frozen=True)
class Trajectories:
    """The results of one world: a trajectory per trained model, with the errors of every estimator by number of rows.

    `cells` are the rows of `simulation.measure_cell`, each with the trajectories of four models. Models of the same
    distribution are dependent, so that bootstrap samples are of distributions.
    """

    cells: Sequence[Row]
    sizes: tuple[int, ...]  # numbers of rows
    boots: int  # bootstrap samples
    seed: int

    @cached_property
    def distributions(self) -> list[tuple[int, int, int]]:
        """The distribution of each trajectory: classes, dimensions and number."""
        return [(c["k"], c["d"], c["number"]) for c in self.cells for _ in c["models"]]

    @cached_property
    def samples(self) -> list[Array]:
        """Bootstrap samples of distributions, as index arrays of their trajectories."""
        return _bootstrap_samples(self.distributions, self.boots, self.seed)

    def _models(self, lens: str) -> list[Row]:
        """The results of every trajectory through a lens."""
        return [model["lenses"][lens] for cell in self.cells for model in cell["models"]]

    def labels(self, lens: str) -> list[str]:
        """The labels of the estimators that are evaluated through a lens."""
        return list(self.cells[0]["models"][0]["lenses"][lens]["members"])

    def stat(self, lens: str, label: str, name: str) -> Array:
        """One of STATS for an estimator, (trajectories, sizes); NaN where it is missing."""
        index = STATS.index(name)
        values = [[stats[index] for stats in model["members"][label]] for model in self._models(lens)]
        return np.array(values, dtype=np.float64)

    def rmse(self, lens: str, label: str, *, calibrated: bool = False) -> Array:
        """Root mean squared error, (trajectories, sizes); `calibrated` is for labels drawn from the model."""
        bias, sd = ("mean0", "sd0") if calibrated else ("bias", "sd")
        return np.hypot(self.stat(lens, label, bias), self.stat(lens, label, sd))

    def truth(self, lens: str, name: str = "l1") -> Array:
        """The true error or a bound on it, (trajectories,); `name` is an attribute of `TrueErrorBounds`."""
        return np.array([model["truth"][name] for model in self._models(lens)])

    def bins(self, lens: str, partition: str) -> Array:
        """The RMSE of ECE by number of bins, (trajectories, sizes, bin counts)."""
        values = [model["bins"][partition] for model in self._models(lens)]
        return np.array(values, dtype=np.float64)

    def share_in_order(self, lens: str, label: str) -> Array:
        """Share of resamples in which the worse of two models has the larger estimate, (cells, sizes).

        The mean over pairs of models of one training set with different true errors.
        """
        means = []
        for cell in self.cells:
            pairs = [pair["right"][label] for pair in cell["ranks"][lens] if pair["gap"]]
            shares = np.array(pairs, dtype=np.float64).reshape(len(pairs), len(self.sizes))
            means.append(shares.mean(axis=0) if len(pairs) else np.full(len(self.sizes), np.nan))
        return np.array(means)

    def limits(self, values: Array, statistic: Callable[..., Any] = np.median) -> tuple[Array, Array, Array]:
        """A statistic along the first axis (trajectories or cells) with 95 % bootstrap limits over distributions."""
        samples = self.samples
        if len(values) != len(self.distributions):
            cells = [(cell["k"], cell["d"], cell["number"]) for cell in self.cells]
            samples = _bootstrap_samples(cells, self.boots, self.seed)
        drawn = np.array([statistic(values[sample], axis=0) for sample in samples])
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        return np.asarray(statistic(values, axis=0)), low, high


def _bootstrap_samples(distributions: Sequence[tuple[int, int, int]], boots: int, seed: int) -> list[Array]:
    """Index arrays of bootstrap samples, which contain either all or none of the entries with one distribution."""
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i, distribution in enumerate(distributions):
        groups.setdefault(distribution, []).append(i)
    indices = [np.array(group) for group in groups.values()]
    rng = np.random.default_rng([seed, 5])
    return [np.concatenate([indices[i] for i in rng.integers(0, len(indices), len(indices))]) for _ in range(boots)]


SHOWN_SIZES = (30, 88, 259, 759, 2229)  # numbers of rows in the short tables, or those closest to them
MAX_RANKED_ROWS = 500  # the estimators of the paper are ranked for fewer rows, as in its figure
ROUGHNESS_TOLERANCE = 0.005  # if `fine` is above `high` by more than this, the calibration curve is not smooth


def shown_size_indices(sizes: Sequence[int]) -> list[int]:
    """Indices of the sizes closest to SHOWN_SIZES on a logarithmic scale."""
    return sorted({int(np.argmin(np.abs(np.log(np.array(sizes) / n)))) for n in SHOWN_SIZES})


def percentile_table(trajectories: Trajectories) -> tuple[dict[str, Any], ...]:
    """One row per estimator of the paper and for the constant 0: the 95th percentile of |estimate − truth| by size.

    It is the median over trajectories, with 95 % limits. `mean rank` is that among the fifteen estimators of the paper,
    over the sizes of its figure.
    """
    rows = []
    for lens in LENSES:
        labels = [label for label in trajectories.labels(lens) if VARIANTS[label].kind in ("zero", "paper", "swapped")]
        values, low, high = trajectories.limits(
            np.stack([trajectories.stat(lens, label, "p95") for label in labels], axis=-1)
        )
        fifteen = [i for i, label in enumerate(labels) if VARIANTS[label].kind == "paper"]
        ranked_sizes = [i for i, n in enumerate(trajectories.sizes) if n < MAX_RANKED_ROWS]
        ranks = (np.argsort(np.argsort(values[np.ix_(ranked_sizes, fifteen)], axis=1), axis=1) + 1).mean(axis=0)
        for j, label in enumerate(labels):
            row: dict[str, Any] = {"lens": lens, "estimator": label}
            row["mean rank"] = float(ranks[fifteen.index(j)]) if j in fifteen else None
            for i in range(len(trajectories.sizes)):
                row[str(trajectories.sizes[i])] = float(values[i, j])
                row[f"{trajectories.sizes[i]} low"], row[f"{trajectories.sizes[i]} high"] = (
                    float(low[i, j]),
                    float(high[i, j]),
                )
            rows.append(row)
    return tuple(rows)


def short_percentile_table(rows: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> tuple[dict[str, Any], ...]:
    """The percentiles at few sizes with limits in brackets, best estimator first."""
    table = []
    for row in sorted(rows, key=lambda row: (row["lens"] != LENSES[0], row["mean rank"] or 99)):
        short_row = {"lens": row["lens"], "estimator": row["estimator"], "mean rank": row["mean rank"]}
        for n in (str(sizes[i]) for i in shown_size_indices(sizes)):
            short_row[f"n = {n}"] = f"{row[n]:.3f} [{row[f'{n} low']:.3f}, {row[f'{n} high']:.3f}]"
        table.append(short_row)
    return tuple(table)


def error_table(trajectories: Trajectories) -> tuple[dict[str, Any], ...]:
    """One row per lens, estimator and size: medians over trajectories of bias, sd, RMSE and p95, and mean power."""
    rows = []
    for lens in LENSES:
        zero = trajectories.rmse(lens, "0")
        for label in trajectories.labels(lens):
            target = VARIANTS[label].target
            columns = {
                "bias": trajectories.stat(lens, label, "bias"),
                "sd": trajectories.stat(lens, label, "sd"),
                "p95": trajectories.stat(lens, label, "p95"),
            }
            columns |= {
                "RMSE": trajectories.rmse(lens, label),
                "RMSE calibrated": trajectories.rmse(lens, label, calibrated=True),
            }
            truth = trajectories.truth(lens, "l2" if target == "l2" else "l1")[:, None]
            columns["relative RMSE"] = columns["RMSE"] / np.maximum(truth, 1e-4)
            columns["better than 0"] = (columns["RMSE"] < (truth if target == "l2" else zero)).astype(np.float64)
            power = trajectories.stat(lens, label, "power").mean(axis=0)
            in_order = trajectories.share_in_order(lens, label).mean(axis=0)
            if VARIANTS[label].slow:  # a quantile of few resamples is too inaccurate for a test
                power = np.full_like(power, np.nan)
            for i, n in enumerate(trajectories.sizes):
                row: dict[str, Any] = {
                    "lens": lens,
                    "estimator": label,
                    "target": "other" if target == "own" else target,
                    "n": n,
                }
                for name, values in columns.items():
                    required = columns["RMSE"] if name == "better than 0" else values
                    average = np.mean if name == "better than 0" else np.median
                    row[name] = None if np.isnan(required[:, i]).any() else float(average(values[:, i]))
                row["power"] = None if np.isnan(power[i]) else float(power[i])
                row["ordered correctly"] = None if np.isnan(in_order[i]) else float(in_order[i])
                rows.append(row)
    return tuple(row for row in rows if row["ordered correctly"] is not None)


def bin_count_table(trajectories: Trajectories, every: int) -> tuple[dict[str, Any], ...]:
    """One row per lens and partition: the number of bins with the lowest median RMSE by size, and its exponent in n."""
    sizes, rows = trajectories.sizes[::every], []
    for lens in LENSES:
        for partition in PARTITIONS:
            table = trajectories.bins(lens, partition)
            if not table.size:
                return ()
            complete = ~np.isnan(table).any(axis=0)
            table = np.where(np.isnan(table), np.inf, table)

            def optimal_bins(rmse: Array, axis: int, complete: Any = complete) -> Array:
                """The best numbers of bins, (sizes,), and the slope of their logarithms in log n."""
                medians = np.where(complete, np.median(rmse, axis=axis), np.inf)
                counts = np.array(BIN_COUNTS)[medians.argmin(axis=-1)]
                slope = np.polyfit(np.log(sizes), np.log(counts), 1)[0] if len(sizes) > 1 else np.nan
                return np.append(counts, slope)

            value, low, high = trajectories.limits(table, optimal_bins)
            se = float(np.std([optimal_bins(table[sample], 0)[-1] for sample in trajectories.samples], ddof=1))
            row: dict[str, Any] = {"lens": lens, "partition": partition, "exponent": float(value[-1]), "se": se}
            row |= {"exponent low": float(low[-1]), "exponent high": float(high[-1])}
            row |= {f"n = {n}": int(value[i]) for i, n in enumerate(sizes)}
            rows.append(row)
    return tuple(rows)


def worlds_table(by_world: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """One row per world, lens and shown size: true error, and RMSE of 0, of the best estimator and of common ones."""
    rows = []
    for world, trajectories in by_world.items():
        for lens in LENSES:
            truth = float(np.median(trajectories.truth(lens)))
            for i in shown_size_indices(trajectories.sizes):
                labels = _l1_labels(trajectories, lens, i)
                rmse = {label: float(np.median(trajectories.rmse(lens, label)[:, i])) for label in labels}
                winner = min((label for label in labels if label != "0"), key=lambda label: rmse[label])
                row: dict[str, Any] = {
                    "models": world,
                    "lens": lens,
                    "n": trajectories.sizes[i],
                    "truth": truth,
                    "0": rmse["0"],
                }
                row |= {"best": winner, "RMSE of best": rmse[winner]}
                row |= {
                    label: rmse.get(label)
                    for label in ("ece", "ece debiased", "ece_linear", "ece_linear debiased", "debiased_l1")
                }
                rows.append(row)
    return tuple(rows)


def _l1_labels(trajectories: Trajectories, lens: str, i: int) -> list[str]:
    """The estimators of the mean distance that have an error at the size with index i in every trajectory."""
    known = (
        label
        for label in trajectories.labels(lens)
        if VARIANTS[label].target == "l1" and VARIANTS[label].kind != "swapped"
    )
    return [label for label in known if not np.isnan(trajectories.rmse(lens, label)[:, i]).any()]


def truth_table(by_world: dict[str, Trajectories]) -> tuple[dict[str, Any], ...]:
    """One row per world and lens: the true error, the width of its bounds, and its value with 2,000 and 10,000 bins."""
    rows = []
    for world, trajectories in by_world.items():
        for lens in LENSES:
            l1, low, high, legacy, fine = (
                trajectories.truth(lens, name) for name in ("l1", "low", "high", "legacy", "fine")
            )
            rows.append(
                {
                    "models": world,
                    "lens": lens,
                    "trajectories": len(l1),
                    "truth": float(np.median(l1)),
                    "minimum": float(l1.min()),
                    "maximum": float(l1.max()),
                    "median half width": float(np.median(high - low) / 2),
                    "maximum half width": float((high - low).max() / 2),
                    "excess with 2000 bins": float(np.median(legacy - l1)),
                    "above bracket": float((fine > high + ROUGHNESS_TOLERANCE).mean()),
                    "lower end, 10000 bins": float(np.median(fine)),
                    "l2": float(np.median(trajectories.truth(lens, "l2"))),
                }
            )
    return tuple(rows)


SIZE_BANDS = ((30, 100), (100, 500), (500, 1500), (1500, 5000))
PURPOSES = ("single number", "ranking", "test of calibration")
DEFAULTS = ("ece", "ece_linear", "ece_kde", "debiased_l1")  # estimators whose values are shown
DEFAULT_VARIANTS = {label for label, variant in VARIANTS.items() if variant.kind == "ours" and not variant.settings}
MAX_SHOWN = 5  # number of shown estimators that do not differ significantly from the best


def recommendation_table(trajectories: Trajectories) -> list[dict[str, Any]]:
    """One row per lens, band of sizes and purpose: the best estimator, and those that are not significantly worse.

    For a single number, it has the smallest RMSE against the mean distance, median over trajectories, and the constant
    0 is included. For ranking, it has the largest mean share of correctly ordered pairs. For a test of
    calibration, it has the largest mean power at 5 %, among the estimators that are computed for all resamples. Values
    are means over the sizes of a band. An estimator does not differ significantly from the best if the 95 % limits of
    the difference, over distributions, include 0.
    """
    questions = [(lens, band, purpose) for lens in LENSES for band in SIZE_BANDS for purpose in PURPOSES]
    table = []
    for lens, (low, high), purpose in questions:
        sizes = [i for i, n in enumerate(trajectories.sizes) if low <= n <= high]
        row = _recommend(trajectories, lens, sizes, purpose) if sizes else None
        table += [{"lens": lens, "n": f"{low} to {high}", "purpose": purpose, **row}] if row else []
    return table


def _recommend(trajectories: Trajectories, lens: str, sizes: Sequence[int], purpose: str) -> dict[str, Any] | None:
    """The row of one lens, band and purpose; `sizes` are indices of the sizes of the band."""
    values, average = _purpose_values(trajectories, lens, sizes, purpose)
    if not values:
        return None
    names = list(values)
    sign = 1.0 if purpose == "single number" else -1.0
    table = np.stack([values[name] for name in names], axis=-1)  # (trajectories or cells, sizes, estimators)
    first = int(np.argmin(sign * average(table, axis=0).mean(axis=0)))

    def score_and_difference(sample: Array, axis: int) -> Array:
        """Score of each estimator, and its difference from that of the best, (2, estimators)."""
        scores = average(sample, axis=axis).mean(axis=0)
        return np.stack([scores, scores - scores[first]])

    (score, _), (low, difference_low), (high, difference_high) = trajectories.limits(table, score_and_difference)
    ranked = np.argsort(sign * score)
    not_different = [names[i] for i in ranked if difference_low[i] <= 0 <= difference_high[i] and i != first]
    winner_except_zero = next(i for i in ranked if names[i] != "0")
    default_positions = {name: names.index(name) for name in DEFAULTS if name in names}
    default_texts = [
        f"{name} {score[i]:.3g}{' (n.s.)' if name in not_different or i == first else ''}"
        for name, i in default_positions.items()
    ]
    more = f" and {len(not_different) - MAX_SHOWN} more" if len(not_different) > MAX_SHOWN else ""
    return {
        "best": names[first],
        "value": float(score[first]),
        "low": float(low[first]),
        "high": float(high[first]),
        "not significantly different": ", ".join(not_different[:MAX_SHOWN]) + more,
        "best except 0": names[winner_except_zero],
        "value except 0": float(score[winner_except_zero]),
        "defaults": ", ".join(default_texts),
        "default among best": not DEFAULT_VARIANTS.isdisjoint({names[first], *not_different}),
    }


def _purpose_values(
    trajectories: Trajectories, lens: str, sizes: Sequence[int], purpose: str
) -> tuple[dict[str, Array], Any]:
    """The values of each estimator for a purpose, (trajectories or cells, sizes), and how they are averaged.

    Only estimators that have a value at each of these sizes are included.
    """
    values = {}
    for label in trajectories.labels(lens):
        if VARIANTS[label].kind == "swapped" or (purpose == "single number" and VARIANTS[label].target != "l1"):
            continue
        if (
            purpose == "test of calibration" and VARIANTS[label].slow
        ):  # a quantile of few resamples is too inaccurate for a test
            continue
        if purpose == "single number":
            by_size = trajectories.rmse(lens, label)
        elif purpose == "ranking":
            by_size = trajectories.share_in_order(lens, label)
        else:
            by_size = trajectories.stat(lens, label, "power")
        selected = by_size[:, sizes]
        selected = selected[:, ~np.isnan(selected).all(axis=0)]
        expected = len(sizes) if purpose != "test of calibration" else selected.shape[1]
        if selected.size and selected.shape[1] == expected and not np.isnan(selected).any():
            values[label] = selected
    n_sizes = max((v.shape[1] for v in values.values()), default=0)
    values = {label: v for label, v in values.items() if v.shape[1] == n_sizes}
    return values, np.median if purpose == "single number" else np.mean


def summarize_defaults(results: Sequence[dict[str, Any]]) -> str:
    """In words, how often a default estimator is the best or not significantly different, and how often 0 is best."""
    n_default = sum(row["default among best"] for row in results)
    disagreements = [
        f"{row['purpose']} with the lens {row['lens']}, n {row['n']}: {row['best']}"
        for row in results
        if not row["default among best"]
    ]
    zero = sum(row["best"] == "0" for row in results if row["purpose"] == "single number")
    n_bands = sum(row["purpose"] == "single number" for row in results)
    text = (
        f"In {n_default} of {len(results)} cases, an estimator with default settings is the best or not significantly"
        " different from it"
    )
    text += f"; exceptions: {'; '.join(disagreements)}." if disagreements else "."
    return f"{text} As a single number, the constant 0 is the most accurate in {zero} of {n_bands} bands of sizes."
