"""Tally: mergeable sums over the cells of a fine grid, from which views of every stored lens are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_first
from trueodds.core.settings import BinCount, check
from trueodds.core.typing import Array
from trueodds.data.plausibility import (
    MIN_LABELS,
    UNDERCONFIDENCE,
    class_probability_notes,
    hard_labels_note,
    no_correct_answer_notes,
    predicted_outcome_notes,
    unobserved_class_notes,
)
from trueodds.data.predictions import Predictions
from trueodds.data.weights import counts_of_rows
from trueodds.kernels import map_blocks
from trueodds.kernels.fine_grid import N_EQUAL_CELLS
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.lens_by_name import Custom, as_lens
from trueodds.lenses.view import View
from trueodds.tallies import tally_sums
from trueodds.tallies.batch_fingerprints import BatchFingerprints
from trueodds.tallies.block_sums import sum_block
from trueodds.tallies.cells import Cells, SimplexCells, cells_of_view
from trueodds.tallies.group_tallies import merge_groups, tally_groups
from trueodds.tallies.row_block import RowBlock
from trueodds.tallies.tally_sums import MAX_NULL_SIZE, TallySums

MIN_ROWS_PER_BLOCK = 65_536  # minimum number of rows per block
MAX_BLOCKS = 16  # maximum number of blocks, whose sums are in memory together
MAX_NULL_BYTES = 2**26  # maximum number of bytes of their null covariances, 8·(K·bins)² each
NO_ROWS_TEXT = "This needs the rows, which a tally does not keep."
ROWS_REMEDY = "Pass the predictions from which the tally was made."


@dataclass(frozen=True, slots=True, eq=False)
class Tally(TallySums):
    """Mergeable sums of predictions and outcomes over fine cells, for every stored lens.

    Tallies of batches or machines are added with `+`. All statistics are computed from the sums, except those that
    need single rows. A tally keeps the lenses confidence, rank:2 and rank:3 (three classes or more), each class, and
    those passed to `from_predictions`. It also keeps proper scores, counts of special rows, and each group column with
    its default lens.

    Attributes
    ----------
    kind : {"classes", "confidence", "multilabel"}
        Kind of the predictions.
    classes : tuple
        Names of the classes.
    dtype : str
        Type of the probabilities. Several types are joined by "+".
    bins : int
        Number of uniform bins of the null covariance.
    grid : int or None
        Bins per axis of the joint lenses.
    view_names : tuple of str
        The binary views in the order of `cells`, with classes by number.
    n : int
        Number of rows.
    weight : float
        Total weight.
    cells, joint : Cells, mapping
        Sums of the binary views, and of the joint lenses by name.
    null : ndarray or None
        Upper triangle of the null covariance.
    scores, counts : mapping, SpecialRowCounts
        Sums of the proper scores by name, and counts of special rows.
    groups : mapping
        Tally of each value of each group column.
    batches : BatchFingerprints
        Fingerprints of the batches of rows, by which rows that are added twice are recognized.

    Notes
    -----
    `+` is associative, commutative (up to float64 rounding) and does not change its operands. `sum` adds a list of
    tallies. Memory: 48 bytes (88 with weights or votes) per occupied cell, and 8·(K·bins)² for the null covariance.

    Examples
    --------
    >>> a, b = Predictions([1, 0], [0.9, 0.2]), Predictions([1], [0.9])
    >>> both = Tally.from_predictions(a) + Tally.from_predictions(b)
    >>> both.n, both.views("positive")[0].y.tolist(), round(both.score("brier")["mean"], 4)
    (3, [0.0, 1.0], 0.02)
    """

    cluster: ClassVar[None] = None  # rows of a tally are independent

    @classmethod
    def from_predictions(
        cls,
        preds: Predictions,
        *,
        lenses: Iterable[str | Lens] = (),
        grid: int | None = None,
        bins: int = 15,
        weight_kind: str | None = None,
    ) -> Tally:
        """Tally one batch of rows.

        Parameters
        ----------
        preds : Predictions
            Rows of any kind, including weights, votes and groups.
        lenses : iterable of str or Lens, optional
            Lenses to keep in addition to the default ones, such as "groups:[[0,1],[2]]" or "rank:4". Lenses with a
            vector per row need `grid`.
        grid : int, optional
            Keep the canonical lens (and named joint lenses) on a simplex grid with this number of bins per axis.
        bins : int, default=15
            Uniform bins of the null covariance between classes, which is kept while K·bins ≤ 2000.
        weight_kind : {"importance", "frequency"}, optional
            With ``"frequency"``, a row of weight c is counted as c rows, up to 2⁵³ in all.

        Returns
        -------
        Tally
            The sums of the batch.

        Raises
        ------
        InputError
            TO404 if a lens cannot be kept. TO203 if `bins` is not a count. TO204 if a lens does not apply. TO110 if
            frequency weights are not whole numbers.

        Notes
        -----
        Cost: about 0.1 µs per row of ten classes; with frequency weights up to c it is log₂ c times as much.
        """
        if weight_kind == "frequency" and preds.weight is not None:
            return cls._from_counted_rows(preds, lenses=lenses, grid=grid, bins=bins)
        if preds.cluster is not None:
            raise InputError(
                "TO404",
                "A tally does not keep clusters, and treating their rows as independent would understate the"
                " uncertainty.",
                "rows in clusters",
                "Audit the rows themselves: ⟨mode='exact' (--mode exact)⟩.",
            )
        refuse_unknown_labels(preds)
        bins, grid = check("bins", bins, BinCount, 15), check("grid", grid, BinCount | None, 10)
        if preds.weight is not None and not preds.weight.all():
            preds = preds[preds.weight > 0]  # as in a View, rows of weight 0 are ignored
        count_group = partial(_tally_rows, preds, bins=bins, default_lens_only=True)
        groups = {column: tally_groups(preds, values, count_group) for column, values in preds.group.items()}
        batches = BatchFingerprints.from_predictions(preds)
        tally = replace(_tally_rows(preds, slice(None), bins), grid=grid, groups=groups, batches=batches)
        extra_lenses = [as_lens(lens) for lens in ([lenses] if isinstance(lenses, (str, Lens)) else lenses)]
        if grid is not None and preds.kind == "classes":
            extra_lenses.append(Canonical())
        for lens in extra_lenses:
            tally = tally._with_lens(lens, preds)
        return tally

    @classmethod
    def _from_counted_rows(cls, preds: Predictions, **settings: Any) -> Tally:
        """Tally each row as often as its weight says, by doubling the sums of the rows of each binary digit."""
        counts, rows = counts_of_rows(preds.w), preds.without_weights()
        total: Tally | None = None
        for digit in reversed(range(int(counts.max()).bit_length())):
            total = None if total is None else total + total
            if (has_digit := (counts >> digit) % 2 == 1).any():
                part = cls.from_predictions(rows[has_digit], **settings)
                total = part if total is None else total + part
        assert total is not None  # a weight is positive
        return replace(total, batches=BatchFingerprints.from_predictions(preds))

    def _with_lens(self, lens: Lens, preds: Predictions) -> Tally:
        lens.check(preds)
        if self._find_stored_views(lens) or lens.name in self.joint:
            return self
        if isinstance(lens, Custom):
            raise InputError(
                "TO404", "A tally keeps only lenses with a name.", f"ψ {lens.name}", "Compute it from rows."
            )
        (view,) = lens.views(preds)
        if not view.joint:
            cells = Cells.concatenate_views([(0, self.cells), (len(self.view_names), cells_of_view(view))])
            return replace(self, view_names=(*self.view_names, lens.name), cells=cells)
        if self.grid is None:
            raise InputError(
                "TO404",
                f"The lens {lens.name} has a vector per row, for which a tally needs a grid.",
                "⟨grid=None⟩",
                "Set it when tallying, for instance ⟨grid=10⟩.",
            )
        return replace(self, joint={**self.joint, lens.name: SimplexCells.from_view(view, self.grid)})

    def __add__(self, other: Any) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        self._check_mergeable(other)
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
            groups={column: merge_groups(values, other.groups[column]) for column, values in self.groups.items()},
            batches=self.batches + other.batches,
        )

    def __radd__(self, other: Any) -> Tally:
        """Return this tally for 0 + tally, with which `sum` begins."""
        return self if type(other) is int and other == 0 else NotImplemented

    def _check_mergeable(self, other: Tally) -> None:
        """Raise TO401 if the tallies differ in what they hold."""
        other_contents = other._contents()
        for attribute, value in self._contents().items():
            if value != other_contents[attribute]:
                raise InputError(
                    "TO401",
                    f"Tallies with different {attribute} cannot be added.",
                    f"{describe(value)} and {describe(other_contents[attribute])}",
                    "Tally both again with the same columns in one order: ⟨probs=['p_a', 'p_b', …]⟩."
                    if attribute == "classes"
                    else "Tally both with the same settings.",
                )

    def _contents(self) -> dict[str, Any]:
        """What the tally holds, by the noun of an error message: two tallies must agree in it to be added."""
        return {
            "kind": self.kind,
            "classes": list(self.classes),
            "lenses": [*self.view_names, *sorted(self.joint)],
            "grid": self.grid,
            "bins": self.bins,
            "group columns": sorted(self.groups),
        }

    @property
    def lenses(self) -> tuple[str, ...]:
        """Names of the lenses that `views` accepts."""
        return (*tally_sums.lens_names(self.view_names, self.kind, self.classes), *sorted(self.joint))

    @property
    def resolution(self) -> str:
        """Description of the cells."""
        fine = f"tally of {N_EQUAL_CELLS:,} equal cells, with the first and the last divided further near 0 and 1"
        return fine + (f"; vectors on a grid of {self.grid}" if self.joint else "")

    @property
    def accuracy(self) -> float:
        """Weighted share of correct rows (accuracy); NaN if no lens provides it."""
        if "confidence" not in self.view_names:
            return float("nan")
        (view,) = self.views("confidence")
        return float((view.w * view.y).sum() / view.total)

    @property
    def correct(self) -> float:
        """Total weight of the correct rows."""
        return self.accuracy * self.weight

    @property
    def null_covariance(self) -> Array | None:
        """Covariance of Σw(y − p) per report cell under calibration: Σ w²(δ_kl p_k − p_k p_l), (K·bins, K·bins).

        The report cell of class c and uniform bin b has the number c·bins + b.
        """
        return None if self.null is None else np.triu(self.null) + np.triu(self.null, 1).T

    def views(self, lens: str | Lens) -> tuple[View, ...]:
        """Return the views of a lens, as cells of many rows.

        Parameters
        ----------
        lens : str or Lens
            The lens.

        Returns
        -------
        tuple of View
            One view per problem of the lens.

        Raises
        ------
        InputError
            TO405 if the tally does not hold the lens.
        """
        lens = as_lens(lens)
        if stored := self._find_stored_views(lens):
            return tuple(self.cells.view(self.view_names.index(key), name, self.k) for key, name in stored)
        if lens.name in self.joint:
            return (self.joint[lens.name].view(lens.name, self.k),)
        raise InputError(
            "TO405",
            "The tally does not hold that lens.",
            f"⟨lens={lens.name!r}⟩",
            f"It holds {format_first(self.lenses, 12)}. Name others when tallying.",
        )

    def score(self, name: str) -> dict[str, float]:
        """Return the mean, standard error and sums of a proper score.

        "brier" is (p − y)² for two classes, the sum over classes for more, and the mean over labels for
        multilabel predictions.

        Parameters
        ----------
        name : {"brier", "log_loss"}
            The score.

        Returns
        -------
        dict
            Mean, standard error and sums by name.

        Raises
        ------
        InputError
            TO405 if the score is unknown.
        """
        if name not in self.scores:
            raise InputError(
                "TO405",
                "The tally does not hold that score.",
                describe(name),
                f"It holds {' and '.join(self.scores)}." if self.scores else "Create it with all_lenses=True.",
            )
        sums = self.scores[name]
        return {"mean": sums.mean, "standard_error": sums.standard_error, **asdict(sums)}

    def notes(self, lens: str | Lens | None = None) -> tuple[Note, ...]:
        """Return the notes on all rows, and those of a lens.

        Parameters
        ----------
        lens : str or Lens, optional
            The lens.

        Returns
        -------
        tuple of Note
            The notes.
        """
        notes = self.counts.notes()
        if repeated := self.batches.repeated_rows:
            text = (
                f"{repeated:,} of {self.n:,} rows repeat a batch of the same rows in the same order. If it was added"
                " twice, its rows count twice."
            )
            notes = (*notes, Note("TN172", text))
        probabilities = self.n * (1 if self.kind == "confidence" else self.k)
        if self.n >= MIN_LABELS and self.counts.zeros + self.counts.ones == probabilities:
            notes = (*notes, hard_labels_note(self.kind))
        notes = (*notes, *self._plausibility_notes())
        if self.counts.ties and lens is not None and as_lens(lens).name in tally_sums.LARGEST_PROBABILITY_LENSES:
            have = "row has" if self.counts.ties == 1 else "rows have"
            text = (
                f"{self.counts.ties:,} {have} tied largest probabilities. The first of the tied classes counts as"
                " predicted."
            )
            notes = (*notes, Note("TN103", text))
        return notes

    def _plausibility_notes(self) -> list[Note]:
        """Return the notes of `trueodds.data.plausibility` on outcomes and confidences that can be told from cells."""
        confidences = self.views("confidence")[0] if "confidence" in self.view_names else None
        if self.kind == "confidence":
            assert confidences is not None
            is_low = confidences.p < 0.5
            return [
                *class_probability_notes(confidences.p[is_low], confidences.y[is_low], confidences.n[is_low]),
                *no_correct_answer_notes(
                    float(weighted_sum(confidences.w, confidences.y)), float(confidences.n @ confidences.p)
                ),
            ]
        notes: list[Note] = []
        if confidences is not None and not self.counts.voted:
            # Sharpened as if the other classes were equally probable, which gives the fewest differences.
            largest = confidences.p**UNDERCONFIDENCE
            others = (1 - confidences.p) ** UNDERCONFIDENCE * (self.k - 1) ** (1 - UNDERCONFIDENCE)
            expected = float(confidences.n @ (others / (largest + others)))
            n_differences = round(float(confidences.n @ (1 - confidences.y)))
            notes += predicted_outcome_notes(n_differences, int(confidences.n.sum()), expected)
        if all(f"class:{c}" in self.view_names for c in range(self.k)):
            views = [self.cells.view(self.view_names.index(f"class:{c}")) for c in range(self.k)]
            n_events = np.array([view.n @ view.p for view in views])
            is_observed = np.array([bool((view.w * view.y > 0).any()) for view in views])
            notes += unobserved_class_notes(is_observed, n_events, self.classes, self.kind)
        return notes

    def __repr__(self) -> str:
        content = "confidence and correctness" if self.kind == "confidence" else f"{self.k} classes"
        return f"Tally(n={self.n:,}, {content}, {len(self.cells.index):,} cells)"

    def _find_stored_views(self, lens: Lens) -> list[tuple[str, str]]:
        """Names of the stored views of a lens, each with the name that the lens gives it; empty if one is missing."""
        names = tally_sums.stored_views_of_lens(lens, self.kind, self.classes)
        return names if all(key in self.view_names for key, _ in names) else []


def require_rows(data: Any, problem: str, *, got: str = "a tally", fix: str = ROWS_REMEDY) -> Any:
    """Return data that have rows; raise TO403 for a tally."""
    if isinstance(data, Tally):
        raise InputError("TO403", problem, got, fix)
    return data


def models_with_rows(models: Mapping[str, Any]) -> dict[str, Predictions]:
    """Return the models that are no tallies."""
    return {name: model for name, model in models.items() if not isinstance(model, Tally)}


def lens_views(data: Predictions | Tally, lens: Lens) -> tuple[View, ...]:
    """Return the views of a lens on rows or on the cells of a tally."""
    return data.views(lens) if isinstance(data, Tally) else lens.views(data)


def _tally_rows(preds: Predictions, selection: slice | Array, bins: int, *, default_lens_only: bool = False) -> Tally:
    """Tally rows with the default lenses, in blocks that depend on the numbers of rows, classes and bins only."""
    ranks, classes = tally_sums.default_views(preds.kind, preds.k, default_lens_only=default_lens_only)
    keeps_null_covariance = preds.kind == "classes" and not default_lens_only and preds.k * bins <= MAX_NULL_SIZE
    max_blocks = MAX_BLOCKS
    if keeps_null_covariance:
        max_blocks = max(1, min(MAX_BLOCKS, MAX_NULL_BYTES // (8 * (preds.k * bins) ** 2)))
    n_rows = preds.n if isinstance(selection, slice) else len(selection)

    def tally_task(start: int, stop: int) -> Tally:
        rows = RowBlock.from_predictions(
            preds, slice(start, stop) if isinstance(selection, slice) else selection[start:stop]
        )
        sums = sum_block(rows, ranks, classes, bins if keeps_null_covariance else None)
        return Tally(
            kind=preds.kind,
            classes=preds.classes,
            dtype=preds.dtype,
            bins=bins,
            view_names=tally_sums.view_names(ranks, classes),
            n=stop - start,
            weight=float(stop - start if rows.w is None else rows.w.sum()),
            cells=sums.cells,
            null=sums.null,
            scores=sums.scores,
            counts=sums.counts,
        )

    return reduce(Tally.__add__, map_blocks(tally_task, n_rows, max(MIN_ROWS_PER_BLOCK, -(-n_rows // max_blocks))))


def refuse_unknown_labels(preds: Predictions) -> None:
    """Raise TO359 if single labels of a multilabel problem are unknown."""
    if preds.known is not None:
        raise InputError(
            "TO359",
            "A tally needs every label of a row, because it sums the scores of rows.",
            f"{int((~preds.known).sum()):,} unknown labels in {preds.n:,} rows",
            "Use ⟨mode='exact'⟩. To tally, write a file for each label, with the rows in which it is known.",
        )
