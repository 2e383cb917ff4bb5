"""Tally: mergeable sums over fine cells that give back a view for every stored lens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import BinCount, check
from trueodds.core.typing import Array
from trueodds.data.plausibility import MIN_LABELS, hard_labels_note
from trueodds.data.predictions import Predictions
from trueodds.kernels import in_blocks
from trueodds.kernels.fine_grid import HALVINGS, WIDTH
from trueodds.lenses import custom
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens import as_lens
from trueodds.lenses.view import View
from trueodds.tallies import stored_views as slots
from trueodds.tallies.cells import Cells, Rows, cells_of_view
from trueodds.tallies.group_tallies import tally_groups, union
from trueodds.tallies.row_counts import Counts, count_rows
from trueodds.tallies.score_sums import ScoreSums
from trueodds.tallies.simplex_cells import SimplexCells

BLOCK = 65_536  # rows counted at a time
BLOCKS = 16  # at most, so that what waits to be added stays small
NULL_SIZE = 2_000  # K·bins up to which the joint null law of the classes is kept
NULL_MEMORY = 2**26  # bytes of null covariances that may wait to be added


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Sums over fine cells: batch + batch, machine + machine; everything but the row-wise statistics follows.

    Keeps the lenses confidence, rank:2 and rank:3 (three classes or more), every class, and those named; proper
    scores; counts of special rows; each group column with its default lens. `+` is associative, commutative (to
    float64 rounding) and leaves its operands alone.
    Memory: 48 bytes (88 with weights or votes) for each occupied cell, and 8·(K·bins)² for the null covariance.

    >>> a, b = Predictions([1, 0], [0.9, 0.2]), Predictions([1], [0.9])
    >>> both = Tally.of(a) + Tally.of(b)
    >>> both.n, both.views("positive")[0].y.tolist(), round(both.score("brier")["mean"], 4)
    (3, [0.0, 1.0], 0.02)
    """

    kind: str  # as of Predictions
    classes: tuple[Any, ...]
    dtype: str  # of the probabilities; several are joined by +
    bins: int  # report bins of the null covariance
    grid: int | None  # of the joint lenses
    slots: tuple[str, ...]  # the binary views in the order of `cells`; classes by number
    n: int
    weight: float
    cells: Cells
    joint: Mapping[str, SimplexCells]  # by the name of the lens
    null: Array | None  # (K·bins, K·bins) upper triangle, see `null_covariance`
    scores: Mapping[str, ScoreSums]
    counts: Counts
    groups: Mapping[str, Mapping[str, Tally]]  # column -> value -> tally of the default lens

    @classmethod
    def of(
        cls, preds: Predictions, *, lenses: Iterable[str | Lens] = (), grid: int | None = None, bins: int = 15
    ) -> Tally:
        """Count one batch of rows.

        Parameters
        ----------
        preds : Predictions
            Rows of any kind, weights, votes and groups included.
        lenses : names or Lens
            Lenses to keep beyond the standing ones, such as `groups:[[0,1],[2]]` or `rank:4`; those with a vector
            per row need `grid`.
        grid : int, optional
            Keep canonical (and named joint lenses) on a simplex grid of so many bins per axis.
        bins : int
            Uniform bins of the null covariance between classes, kept while K·bins ≤ 2000.

        Cost: about 0.1 µs per row of ten classes. Raises TO404 for a lens that cannot be kept, TO203 for bins that
        are no count, TO204 for a lens without meaning here.
        """
        if preds.cluster is not None:
            raise InputError(
                "TO404",
                "A tally does not keep which rows belong together, and counted apart their chance would be misjudged.",
                "rows in clusters",
                "Audit the rows themselves: mode='exact' (--mode exact).",
            )
        bins, grid = check("bins", bins, BinCount, 15), check("grid", grid, BinCount | None, 10)
        if preds.weight is not None and not preds.weight.all():
            preds = preds[preds.weight > 0]  # as in a View, a row of weight 0 is no row
        count_group = partial(_count, preds, bins=bins, group=True)
        groups = {column: tally_groups(preds, values, count_group) for column, values in preds.group.items()}
        tally = replace(_count(preds, slice(None), bins), grid=grid, groups=groups)
        extra_lenses = [as_lens(lens) for lens in ([lenses] if isinstance(lenses, (str, Lens)) else lenses)]
        if grid is not None and preds.kind == "classes":
            extra_lenses.append(Canonical())
        for lens in extra_lenses:
            tally = tally._with(lens, preds)
        return tally

    def _with(self, lens: Lens, preds: Predictions) -> Tally:
        """The same tally with one lens more."""
        lens.check(preds)
        if self._where(lens) or lens.name in self.joint:
            return self
        if isinstance(lens, custom.Custom):
            raise InputError(
                "TO404", "A tally keeps lenses that have a name everywhere.", f"ψ {lens.name}", "Measure it on rows."
            )
        (view,) = lens.views(preds)
        if not view.joint:
            cells = Cells.side_by_side([(0, self.cells), (len(self.slots), cells_of_view(view))])
            return replace(self, slots=(*self.slots, lens.name), cells=cells)
        if self.grid is None:
            raise InputError(
                "TO404",
                f"The lens {lens.name} has a vector per row, which a tally keeps only on a grid.",
                "grid=None",
                "Name one when tallying, for instance grid=10.",
            )
        return replace(self, joint={**self.joint, lens.name: SimplexCells.of(view, self.grid)})

    def __add__(self, other: Tally) -> Tally:
        self._refuse_different(other)
        return replace(
            self,
            dtype="+".join(sorted({*self.dtype.split("+"), *other.dtype.split("+")})),
            n=self.n + other.n,
            weight=self.weight + other.weight,
            cells=self.cells + other.cells,
            joint={name: cells + other.joint[name] for name, cells in self.joint.items()},
            null=None if self.null is None or other.null is None else self.null + other.null,
            scores={name: sums + other.scores[name] for name, sums in self.scores.items()},
            counts=self.counts + other.counts,
            groups={column: union(values, other.groups[column]) for column, values in self.groups.items()},
        )

    def _refuse_different(self, other: Tally) -> None:
        sides = [
            {
                "kind": tally.kind,
                "classes": list(tally.classes),
                "lenses": [*tally.slots, *sorted(tally.joint)],
                "grid": tally.grid,
                "bins": tally.bins,
                "group columns": sorted(tally.groups),
            }
            for tally in (self, other)
        ]
        for what, own in sides[0].items():
            if own != sides[1][what]:
                raise InputError(
                    "TO401",
                    f"Tallies with different {what} cannot be added.",
                    f"{_short(own)} and {_short(sides[1][what])}",
                    "Tally both in the same way.",
                )

    @property
    def k(self) -> int:
        """How many classes."""
        return len(self.classes)

    @property
    def lenses(self) -> tuple[str, ...]:
        """The names under which `views` gives something back."""
        return (*slots.lens_names(self.slots, self.kind, self.classes), *sorted(self.joint))

    @property
    def resolution(self) -> str:
        """How fine the cells are, in words."""
        fine = f"tally of {WIDTH:,} cells, the first and last halved {HALVINGS} times"
        return fine + (f"; vectors on a grid of {self.grid}" if self.joint else "")

    @property
    def accuracy(self) -> float:
        """The weighted share of rows whose predicted class came; NaN where no lens tells."""
        if "confidence" not in self.slots:
            return float("nan")
        (view,) = self.views("confidence")
        return float((view.w * view.y).sum() / view.total)

    @property
    def correct(self) -> float:
        """The weight of the rows whose predicted class came."""
        return self.accuracy * self.weight

    @property
    def null_covariance(self) -> Array | None:
        """Σ w²(δ_kl p_k − p_k p_l), (K·bins, K·bins): the law of Σw(y − p) per report cell if calibrated.

        Report cell (class c, uniform bin b) has the number c·bins + b.
        """
        return None if self.null is None else np.triu(self.null) + np.triu(self.null, 1).T

    def views(self, lens: str | Lens) -> tuple[View, ...]:
        """The views of a lens, as cells of many rows.

        Raises TO405 where the tally was not made for that lens, and says which it has.
        """
        lens = as_lens(lens)
        if entries := self._where(lens):
            return tuple(self.cells.view(self.slots.index(key), name, self.k) for key, name in entries)
        if lens.name in self.joint:
            return (self.joint[lens.name].view(lens.name, self.k),)
        raise InputError(
            "TO405",
            "The tally does not hold that lens.",
            f"lens={lens.name!r}",
            f"It holds {', '.join(self.lenses[:12])}{', …' if len(self.lenses) > 12 else ''}; name others when tallying.",
        )

    def score(self, name: str) -> dict[str, float]:
        """The mean, standard error and sums of `brier` or `log_loss`.

        `brier` is (p − y)² for two classes and the sum over classes above, for independent labels the mean over them.
        Raises TO405 for another score.
        """
        if name not in self.scores:
            raise InputError(
                "TO405", "The tally does not hold that score.", describe(name), "It holds brier and log_loss."
            )
        sums = self.scores[name]
        totals = {field: getattr(sums, field) for field in ("w", "ww", "ws", "wws", "wwss", "infinite", "infinite_w")}
        return {"mean": sums.mean, "standard_error": sums.standard_error, **totals}

    def notes(self, lens: str | Lens | None = None) -> tuple[Note, ...]:
        """The notes of all rows together, and those that the lens brings up."""
        notes = self.counts.notes()
        probabilities = self.n * (1 if self.kind == "confidence" else self.k)
        if self.n >= MIN_LABELS and self.counts.zeros + self.counts.ones == probabilities:
            notes = (*notes, hard_labels_note(self.kind))
        if self.counts.ties and lens is not None and as_lens(lens).name in slots.FIRST:
            have = "row has" if self.counts.ties == 1 else "rows have"
            text = f"{self.counts.ties:,} {have} several largest probabilities; the first class counts as predicted."
            notes = (*notes, Note("TN103", text))
        return notes

    def to_dict(self) -> dict[str, Any]:
        """The tally as its file holds it."""
        from trueodds.tallies import serialization

        return serialization.to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the tally to a file, whole or not at all."""
        from trueodds.tallies import serialization

        serialization.save(self, path)

    def __repr__(self) -> str:
        what = "confidence and correctness" if self.kind == "confidence" else f"{self.k} classes"
        return f"Tally(n={self.n:,}, {what}, {len(self.cells.index):,} cells)"

    def _where(self, lens: Lens) -> list[tuple[str, str]]:
        """The slots of a lens with the names of its views; empty where a slot is missing."""
        entries = slots.stored_views_of_lens(lens, self.kind, self.classes)
        return entries if all(key in self.slots for key, _ in entries) else []


def _count(preds: Predictions, where: slice | Array, bins: int, *, group: bool = False) -> Tally:
    """The tally of the chosen rows with its standing lenses, block by block."""
    ranks, classes = slots.default_views(preds.kind, preds.k, group=group)
    null = preds.kind == "classes" and not group and preds.k * bins <= NULL_SIZE
    # a block's covariance is 8·(K·bins)² bytes; the number of blocks depends on nothing else
    blocks = max(1, min(BLOCKS, NULL_MEMORY // (8 * (preds.k * bins) ** 2))) if null else BLOCKS
    total = preds.n if isinstance(where, slice) else len(where)

    def work(start: int, stop: int) -> Tally:
        rows = Rows.of(preds, slice(start, stop) if isinstance(where, slice) else where[start:stop])
        sums = count_rows(rows, ranks, classes, bins if null else None)
        return Tally(
            kind=preds.kind,
            classes=preds.classes,
            dtype=preds.dtype,
            bins=bins,
            grid=None,
            slots=slots.view_names(ranks, classes),
            n=stop - start,
            weight=float(stop - start if rows.w is None else rows.w.sum()),
            cells=sums.cells,
            joint={},
            null=sums.null,
            scores=sums.scores,
            counts=sums.counts,
            groups={},
        )

    return reduce(Tally.__add__, in_blocks(work, total, max(BLOCK, -(-total // blocks))))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
