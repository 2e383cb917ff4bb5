"""What do all trajectories say together? Numbers of many cells side by side, with limits over distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.resumable_runs import Row

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
        """Trajectories of distributions drawn with replacement, whole: those of one distribution are not independent."""
        return _samples(self.names, self.boots, self.seed)

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
            samples = _samples([(c["k"], c["d"], c["number"]) for c in self.cells], self.boots, self.seed)
        drawn = np.array([statistic(values[sample], axis=0) for sample in samples])
        low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
        return np.asarray(statistic(values, axis=0)), low, high


def _samples(names: Sequence[tuple[int, int, int]], boots: int, seed: int) -> list[Array]:
    groups: dict[tuple[int, int, int], list[int]] = {}
    for i, name in enumerate(names):
        groups.setdefault(name, []).append(i)
    indices = [np.array(group) for group in groups.values()]
    rng = np.random.default_rng([seed, 5])
    return [np.concatenate([indices[i] for i in rng.integers(0, len(indices), len(indices))]) for _ in range(boots)]
