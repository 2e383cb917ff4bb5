"""The base class of hypothesis tests, and the lenses that the default test examines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Verdict
from trueodds.core.settings import Settings
from trueodds.core.signatures import checks_method_call
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.tallies.tally import Tally

FractionProgress = Callable[[float], None]


@dataclass(frozen=True)
class HypothesisTest(Settings):
    """Base class of the hypothesis tests of calibration. Settings are dataclass fields.

    A test takes predictions and lenses rather than one view, because all lenses share the same null draws of the
    labels.
    """

    name: ClassVar[str]
    lens: ClassVar[str | None] = None  # default lens; None for the default of the call
    defaults_to_lens_family: ClassVar[bool] = False  # whether the default is every lens of `lens_family`
    accepts_joint_views: ClassVar[bool] = True  # whether a view may have a probability vector per row
    null_distributions: ClassVar[
        tuple[str, ...]
    ] = ()  # allowed values of null=; empty if there is only one null distribution
    exemptions: ClassVar[dict[str, str]] = {}  # laws of tests/laws that do not apply, each with the reason

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__call__" in vars(cls):
            cls.__call__ = checks_method_call(cls.__call__)  # type: ignore[method-assign]

    def __call__(
        self,
        preds: Predictions,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> Verdict:
        """Test one lens, or a family of several lenses."""
        raise NotImplementedError

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """Test the cells of a tally; tests that require rows raise InputError."""
        raise InputError("TO403", f"The test {self.name} requires the rows.", "a tally", "Use ⟨mode='exact'⟩.")

    def run(
        self,
        data: Predictions | Tally,
        lenses: Sequence[Lens],
        rng: np.random.Generator,
        progress: FractionProgress | None = None,
    ) -> Verdict:
        """Test rows, or the cells of a tally."""
        if isinstance(data, Tally):
            return self.from_tally(data, lenses, rng)
        return self(data, lenses, rng, progress)

    def error_estimator(self) -> Estimator | None:
        """The error, in probability units, that is compared with an equivalence margin; None if the test has none."""
        return None

    def degrees_of_freedom(self, view: View) -> int | None:
        """Degrees of freedom if the statistic of a view is a likelihood ratio, else None."""
        return None

    def estimand(self, preds: Predictions, lens: Lens) -> Estimand | None:
        """The estimand whose null distribution is simulated; None if the p-value is not simulated.

        With `pvalue_from_draws` it allows a power simulation to reuse the null draws of a data set.
        """
        return None

    def pvalue_from_draws(self, estimand: Estimand, draws: NDArray[Any], *, joint: bool) -> float:
        """p-value of one lens from the null draws (views, draws) of its estimand.

        `joint` says whether the draws of the views are joint: made from the same labels, so that they are dependent as
        the observed statistics are.
        """
        raise InputError("TO205", f"The test {self.name} does not redraw labels.", self.name, "Use consistency.")


REDRAW_MODES = ("labels", "both", "all")  # draw labels, draw labels and rows, or enumerate every labeling


def independence_notes(preds: Predictions, *, needs_redraw: bool = False) -> list[Note]:
    """Notes on the independence of the rows, which every test assumes, and on `cluster`, which relaxes it.

    `needs_redraw` says that clusters require null='redraw', so that the note recommends it.
    """
    if preds.cluster is not None:
        return [
            Note(
                "TN204",
                "With clusters the test is approximate. With few clusters and event rates near 0 or 1 its size can"
                " exceed the nominal level.",
            )
        ]
    suffix = " and pass ⟨null='redraw'⟩" if needs_redraw else ""
    return [
        Note(
            "TN203",
            "The null hypothesis includes independence of the rows given the predictions. If rows are dependent (for"
            f" example several rows of one patient), identify their origin with ⟨cluster=⟩{suffix}.",
        )
    ]


def clustered_redraw_note() -> Note:
    """Note on the coefficients that a test with redrawn labels of clustered rows reports."""
    text = (
        "The coefficients have jackknife standard errors over clusters; their intervals and Wald tests use Student's t"
        " and Hotelling's T² distributions. The p-value of the test itself is from the redrawn labels; with"
        " null='asymptotic' it is that of the Wald test."
    )
    return Note("TN270", text)


MAX_CANONICAL_CLASSES = 100  # with more classes a tree over the simplex has too few rows per cell


def lens_family(data: Predictions | Tally) -> tuple[list[Lens], list[Note]]:
    """Return the lenses of the family, the default lens first, and a note if the whole vector is left out.

    Two classes, a confidence, and independent labels have one lens. A tally has those that it holds: the whole vector
    only if it was made with `grid`; with weights or votes, the vector has no null distribution there.

    >>> lenses, _ = lens_family(Predictions([0, 1, 2], [[0.5, 0.3, 0.2]] * 3))
    >>> [str(lens) for lens in lenses]
    ['confidence', 'classwise', 'canonical']
    """
    default = default_lens(data)
    if data.kind != "classes" or data.k <= 2:
        return [default], []
    lenses: list[Lens] = [default, Classwise()]
    notes: list[Note] = []
    if isinstance(data, Tally):
        lenses = [lens for lens in lenses if str(lens) in data.lenses]
        cells = data.joint.get("canonical")
        has_vectors = cells is not None
        if cells is not None and (data.counts.voted or not np.array_equal(cells.w, cells.n)):
            kind = "of votes" if data.counts.voted else "of weighted rows"
            text = f"A tally {kind} has no null distribution for the whole probability vector, which is not tested."
            notes.append(Note("TN210", text))
    else:
        has_vectors = data.k <= MAX_CANONICAL_CLASSES
        if not has_vectors:
            text = (
                f"With {data.k} classes the whole probability vector is not tested. Call test with ⟨lens='canonical'⟩."
            )
            notes.append(Note("TN205", text))
    return [*lenses, *([Canonical()] if has_vectors and not notes else [])], notes
