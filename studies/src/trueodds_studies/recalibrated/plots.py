"""Which rows belong together? The plots of the ecology data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.data import columns

FILE = "ecology_tree_species.parquet"
MODELS = ("GAM", "See5", "SGB")


@dataclass(frozen=True)
class Plots:
    """Presence of each species on each plot, and what three models say; species after species, plots in one order."""

    species: Array  # (n,) names
    plot: Array  # (n,) from 0
    y: Array  # (n,)
    predicted: dict[str, Array]  # of each model (n,)

    @classmethod
    def of(cls, data: str | Path | None) -> Plots:
        """The file says no plot: every species has the same plots in the same order, which residuals bear out."""
        table = columns(FILE, data, "SPECIES", "OBSERVED", *MODELS)
        species = table["SPECIES"].astype(str)
        names = dict.fromkeys(species.tolist())
        plot = np.empty(len(species), dtype=np.int64)
        for name in names:
            mask = species == name
            plot[mask] = np.arange(mask.sum())
        return cls(species, plot, table["OBSERVED"], {model: table[model] for model in MODELS})

    def rows(self, model: str, some: Array | None = None, *, clustered: bool = True) -> Predictions:
        """What a model says of some rows; those of a plot are a cluster."""
        keep = np.ones(len(self.y), dtype=bool) if some is None else some
        cluster = self.plot[keep] if clustered else None
        return Predictions(self.y[keep], self.predicted[model][keep], cluster=cluster)

    def halves(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Masks of the rows of one half of the plots and of the other."""
        count = int(self.plot.max()) + 1
        first = np.isin(self.plot, rng.permutation(count)[: count // 2])
        return first, ~first

    def alike(self, model: str) -> float:
        """Mean square of the correlations between the residuals y − p of two species over plots.

        1 over the number of plots is what chance alone gives where each species' plots are in an order of its own.
        """
        return _correlated(self._by_plot(model))

    def shuffled(self, model: str, rng: np.random.Generator) -> float:
        """The same with the plots of every species shuffled."""
        return _correlated(rng.permuted(self._by_plot(model), axis=1))

    def _by_plot(self, model: str) -> Array:
        residuals = self.y - self.predicted[model]
        return np.stack([residuals[self.species == name] for name in dict.fromkeys(self.species.tolist())])


def _correlated(residuals: Array) -> float:
    return float((np.corrcoef(residuals)[np.triu_indices(len(residuals), 1)] ** 2).mean())
