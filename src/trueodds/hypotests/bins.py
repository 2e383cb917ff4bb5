"""The bin-by-bin test: each bin's event count against its exact null distribution, corrected for the number of bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import as_partition, default_for
from trueodds.core.errors import InputError, Note
from trueodds.core.registry import settings_of
from trueodds.core.typing import Array
from trueodds.estimators.binned import PARTITION_SETTINGS
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import Cells, ViewResult
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.kernels.holm import holm
from trueodds.lenses.view import View
from trueodds.resampling.poisson_binomial import CountTails, VectorTails
from trueodds.resampling.pvalues import pvalue

LISTED = 100  # bins whose numbers are told
NUMBERS = 2e7  # of all covariance matrices that are held, 160 MB
MIN_EXPECTED = 5.0  # expected rows of a class, below which a χ² is coarse


@dataclass(frozen=True)
class BinByBin(ViewTest):
    r"""Each bin's outcomes against what was said there, and which bins stray further than chance lets any of them.

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: z_b = \frac{O_b - E_b}{\sqrt{\sum w^2 p (1 - p)}}, \quad O_b = \sum w y, \quad E_b = \sum w p

    A bin's p is two-sided, from the exact Poisson-binomial law of its count (normal where weights differ). A cell of
    vectors has :math:`X^2_b = d^\top V^+ d` with d = Σw(y − p) and the exact covariance V = Σw²(diag p − ppᵀ), χ² with
    as many degrees of freedom as V has rank. Over bins the smallest p counts: with `null="redraw"`, the default, among
    the smallest of each draw, so that the level is exact for any bins and the part `joint` names the bins that are off
    with all others in view; with `null="asymptotic"` by Holm's correction, the part `holm`.

    Shapes: binary views (n,) and joint views (n, m). Statistic: z, or X², of the strongest bin. Effect: its gap, seen
    minus said, in probability units within [−1, 1]; for vectors that of the class farthest off. Parts: of each bin
    n, said, seen, gap, statistic, pvalue, holm and joint (the 100 strongest where there are more, note TN225). Where
    every probability of a bin is 0 or 1, one outcome against them makes its p 0 (note TN223). The χ² of cells that
    expect fewer than 5 rows of a class is coarse, as is the normal law of few weighted rows (note TN212).
    Cost: O(n log n + Σ min(n_b, 2000)²); with redraws O(bins) per draw beside the labels; for vectors O(cells · m²).
    From a tally rows of a fine cell share its mean. Raises TO203 for bins that the outcomes chose, TO205 where the
    covariances of so many cells do not fit. Source: Bröcker & Smith (2007) for bins against their own law;
    Vaicenavicius et al. (2019) for cells of vectors; min-p over bins after Westfall & Young (1993).

    Parameters
    ----------
    partition : Partition, optional
        15 uniform bins for a binary view, the median-variance tree for a joint one.

    >>> from trueodds.binning.partition import Uniform
    >>> view = View(p=[0.5, 0.5, 0.5, 0.9], y=[1, 1, 1, 1])
    >>> result = BinByBin(partition=Uniform(2)).on(view)
    >>> result.parts["[0, 0.5]"]["pvalue"], result.effect  # three heads of three: 2/8
    (0.25, 0.5)
    """

    name: ClassVar[str] = "bins"
    vectors: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = (
        "each bin's outcomes have their exact law (large, weighted or vector ones a fitted one)"
    )
    jointly: ClassVar[str] = "; the most surprising bin is judged among the most surprising of each draw"
    exempt: ClassVar[dict[str, str]] = {
        "weight two": "a weight of two is one row that counts double, with twice the spread, not two independent rows"
    }
    null: str = "redraw"
    partition: Partition | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partition is not None and self.partition.uses_outcomes:
            raise InputError(
                "TO203",
                "Bins that the outcomes chose look surprising by construction.",
                f"partition {self.partition}",
                "Use equal-mass or uniform bins.",
            )

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *(name for name in settings_of(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> BinByBin:
        """The test from the façade's settings, where bins and partition are words."""
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        return cls(partition=as_partition(**partition_settings), **settings)

    def on(self, view: View) -> ViewResult:
        """Every bin by its own law, and the strongest of them."""
        frozen, tails = self._tails(view)
        binned = tails.binned
        wy = (binned.w[:, None] if view.joint else binned.w) * binned.y
        p = np.exp(tails.log_p(wy))
        table = {**_gaps(binned), "statistic": tails.statistic(wy), "pvalue": p, "holm": np.array(holm(list(p)))}
        order = np.lexsort((-np.abs(table["statistic"]), tails.log_p(wy)))
        notes = []
        if len(order) > LISTED:
            notes.append(Note("TN225", f"The {LISTED} most surprising of {len(order):,} bins are told one by one."))
        if (p == 0).any() and np.isinf(table["statistic"]).any():
            text = "In a bin every probability is 0 or 1, so chance has no part: an outcome against them makes p = 0."
            notes.append(Note("TN223", text))
        names, strongest = _names(frozen, tails.bin_index), order[0]
        parts = {names[b]: {key: float(x[b]) for key, x in table.items()} for b in np.sort(order[:LISTED])}
        partition = self.partition or default_for(view)
        settings = {"partition": str(partition), "occupied_bins": len(order), "smallest_bin": int(binned.n.min())}
        return ViewResult(
            float(table["statistic"][strongest]), float(table["holm"][strongest]), float(table["gap"][strongest]), parts, settings,
            tuple(notes), _doubts(tails),
        )  # fmt: skip

    def cells(self, view: View) -> Cells:
        """Minus the smallest log p of all bins."""
        frozen, tails = self._tails(view)
        across = -2 if view.joint else -1

        def reader(_w: Array, _wp: Array, wy: Array) -> Array:
            return np.asarray(-tails.log_p(np.take(wy, tails.bin_index, axis=across)).min(axis=-1))

        return Cells(view, frozen.index(view.at), frozen.size, reader)

    def among(self, result: ViewResult, _view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Each bin among the most surprising bins of the draws."""
        parts: dict[str, Mapping[str, float]] = {}
        for name, part in result.parts.items():
            surprise = -np.log(part["pvalue"]) if part["pvalue"] > 0 else np.inf
            parts[name] = {**part, "joint": max(pvalue(float(surprise), null_draws) for null_draws in draws)}
        return replace(result, parts=parts)

    def _tails(self, view: View) -> tuple[FittedPartition, CountTails | VectorTails]:
        partition = self.partition or default_for(view)
        frozen = view.once(partition, lambda: partition.freeze(view))
        if view.joint and (numbers := frozen.size * view.p.shape[1] ** 2) > NUMBERS:
            raise InputError(
                "TO205",
                "The covariances of so many cells do not fit into memory.",
                f"{frozen.size:,} cells of {view.p.shape[1]} outcomes, {numbers:,} numbers",
                "Give a larger min_size, or use lens='classwise'.",
            )
        make = VectorTails if view.joint else CountTails
        return frozen, make(view, frozen.index(view.at), frozen.size)


def _gaps(binned: View) -> dict[str, Array]:
    """n, what was said and seen, and the gap of each bin; of vectors those of the class farthest off."""
    p, y = binned.p, binned.y
    which = {}
    if binned.joint:
        worst_class = np.argmax(np.abs(y - p), axis=1)
        which = {"class": worst_class}
        p, y = (np.take_along_axis(x, worst_class[:, None], axis=1)[:, 0] for x in (p, y))
    return {"n": binned.n, **which, "predicted": p, "observed": y, "gap": y - p}


def _names(frozen: FittedPartition, bin_index: Array) -> dict[int, str]:
    """The interval of each bin, or the number of each cell."""
    if not isinstance(frozen, Bins):
        return {b: f"cell {s}" for b, s in enumerate(bin_index)}
    names, (first, last) = {}, ("(", "]") if frozen.closed == "right" else ("[", ")")
    for b, s in enumerate(bin_index):
        open_, shut = ("[" if s == 0 else first), ("]" if s == frozen.size - 1 else last)
        names[b] = f"{open_}{frozen.edges[s]:.6g}, {frozen.edges[s + 1]:.6g}{shut}"
    return names


def _doubts(tails: CountTails | VectorTails) -> tuple[str, ...]:
    binned = tails.binned
    if isinstance(tails, VectorTails):
        expected = np.where(tails.fixed, np.inf, binned.p) * (binned.w**2 / binned.sums("ww"))[:, None]
        n_small = int((expected.min(axis=1) < MIN_EXPECTED).sum())
        text = (
            f"{n_small} of {len(binned.w)} cells expect fewer than 5 rows of some class, and their χ² laws are coarse."
        )
    else:
        effective_n = binned.w**2 / binned.sums("ww") * np.minimum(binned.p, 1 - binned.p)
        n_small = int((effective_n[tails.normal] < MIN_EXPECTED).sum())
        text = (
            f"{n_small} of {len(binned.w)} bins expect fewer than 5 weighted rows of a kind, too few for a normal law."
        )
    return (text,) if n_small else ()
