"""The family of lenses that audits and the default test examine: the default lens, every class, the whole vector."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import Note
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.lenses.lens_by_name import default_lens
from trueodds.tallies.tally import Tally

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
