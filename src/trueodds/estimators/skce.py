"""How far off, said by rows that resemble each other: the squared kernel calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.estimators.pairing.row_pairs import RowPairs
from trueodds.estimators.smoothing.kernels import Bandwidth, KernelName, Similarity
from trueodds.lenses.view import View

FORMS = ("auto", "unbiased", "biased", "block")


@dataclass(frozen=True)
class SquaredKernelError(Estimator):
    r"""Squared kernel calibration error: do rows with similar predictions miss in the same direction?

    Answers: is the whole vector of probabilities right, without bins? Two rows whose predictions resemble each other
    and whose residuals point the same way raise it; residuals of a calibrated model point anywhere.

    .. math:: h_{ij} = k(p_i, p_j)\,(y_i - p_i)\cdot(y_j - p_j), \quad
        \mathrm{SKCE} = \frac{1}{n(n-1)} \sum_{i \ne j} h_{ij}

    with y one-hot (or shares of votes) and k ⊗ δ as the kernel. A binary view is the 2-vector (p, 1 − p), so its
    products are 2 (y − p)(y' − p'): twice what the scalar form says, and the same as for two columns.

    Shapes: a binary view (n,), or a joint view (n, m). Units: squared probability, at most 2; 0 is calibrated. It is
    for comparing and testing, its size depends on the kernel and means little by itself. Bias: none for `unbiased`
    and `block`, which may be negative and are shown signed (their noise floor is 0); `biased` is upward by
    about Σ p(1 − p) / n. Cost: O(n²m) time; O(n log n) for one score with an exponential kernel. Does not merge
    from tallies. Raises TO203 for a form, kernel or bandwidth that is none, TO205 for cells of many rows.
    Weights are importance weights: the pairs of `unbiased` are divided by (Σw)² − Σw².
    Source: Widmann, Lindsten & Zachariah (2019, 2021).

    Parameters
    ----------
    form : str
        `unbiased`: all pairs of two rows. `biased`: the squared norm, each row with itself included. `block`: pairs
        within blocks of consecutive rows only, so it depends on their order. `auto`: `unbiased` up to 5,000 rows
        (200,000 for one score with an exponential kernel), `block` beyond.
    kernel : str or callable
        `exponential`, `gaussian` or `tv-exponential` (see `kernels.Kernel`), or a function k(P, Q) of the vectors.
    bandwidth : float or "median"
        The median distance of the predictions, chosen without labels.
    block_size : int, optional
        Rows per block: a hundredth of all up to 1,000, fewer where pairs would be more than 10⁸. A last block that is
        not full counts with the pairs it has.

    With `interval=None` it is the bare number; beyond 5,000 rows that is the way to ask for `form="unbiased"` of
    vectors.

    >>> round(float(SquaredKernelError(bandwidth=0.5)(View(p=[0.9, 0.9], y=[1, 0]))), 4)  # 2 · (.1)(−.9) · k(0)
    -0.18
    """

    name: ClassVar[str] = "skce"
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    exempt: ClassVar[dict[str, str]] = {
        "weight two": "two equal rows are a pair, and the unbiased form counts pairs: weights are importance weights",
    }
    form: Annotated[str, OneOf(FORMS)] = "auto"
    kernel: KernelName | Similarity = "exponential"
    bandwidth: Bandwidth = "median"
    block_size: Annotated[int, Range(2)] | None = None

    @property
    def interval(self) -> str:  # type: ignore[override]
        """The biased form is the square of a norm; the others scatter around a plug-in."""
        return "noise-floor" if self.form == "biased" else "debiased"

    @property
    def power(self) -> float:  # type: ignore[override]
        """Whether the interval is made on the root."""
        return 2.0 if self.form == "biased" else 1.0

    def value(self, view: View) -> float:
        """The error of the view's rows."""
        return self.linear(view).value()

    def linear(self, view: View) -> RowPairs:
        """The same with each row as a cell: the similarities stay, the outcomes or the rows' counts change."""
        return RowPairs(self, view)

    def plug_in(self, view: View) -> float:
        """What resamples scatter around: each row with itself, as copies are; blocks are resampled without copies."""
        pairs = self.linear(view)
        return pairs.value() if pairs.form == "block" else pairs.biased()

    def expected(self, view: View) -> float | None:
        """Nothing remains of a calibrated model on average, known without draws."""
        return None if self.form == "biased" else 0.0

    def resampled(self, views: Sequence[View], resamples: int, rng: np.random.Generator) -> tuple[Array, str] | None:
        """Rows drawn as anywhere, but many at once; of blocks, whole ones. Several views are drawn together elsewhere."""
        if len(views) > 1:
            return None
        pairs = self.linear(views[0])
        if pairs.form == "block" and len(pairs.edges) > 2:
            return pairs.blocks_drawn(resamples, rng)[None], "blocks"
        return pairs.rows_drawn(resamples, rng)[None], "rows"

    def settings_used(self, view: View) -> dict[str, Any]:
        """Form, kernel, bandwidth and block size as used."""
        pairs = self.linear(view)
        named = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "given")
        return {
            "form": pairs.form,
            "kernel": named,
            **({"bandwidth": pairs.kernel.bandwidth} if isinstance(self.kernel, str) else {}),
            **({"block_size": pairs.block_size} if pairs.form == "block" else {}),
        }

    def notes(self, view: View) -> list[Note]:
        """A word where there are no pairs, or too many of them."""
        pairs = self.linear(view)
        if pairs.lonely:
            return [Note("TN118", "One row has no other to be compared with, so the error is undefined.")]
        if self.form == "auto" and pairs.form == "block":
            text = (
                f"{len(pairs.rows):,} rows have too many pairs: only those within blocks of {pairs.block_size:,} "
                "consecutive rows were compared, so the number depends on the order of the rows."
            )
            return [Note("TN119", text)]
        return []
