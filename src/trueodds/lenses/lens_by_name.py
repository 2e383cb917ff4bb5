"""Look up a lens by its name, make one from a callable of class probabilities, and choose the default lens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import check, parse_digits
from trueodds.core.suggestions import add_synonyms, suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses import LENS_NAMES
from trueodds.lenses.base import Lens, OutcomeCodes
from trueodds.lenses.classes import Canonical, Class, ClassName, Classwise, Groups, Positive
from trueodds.lenses.ranked import Confidence, Rank, TopK, TopLabel

Psi = Callable[[Array, Array], tuple[Array, Array]]  # (Y, P) -> (probabilities, outcomes), see `Custom`


@dataclass(frozen=True, eq=False)
class Custom(Lens):
    """A user-defined lens ψ: a callable (Y, P) → (probabilities (n, m), outcomes (n, m)).

    P (n, K) are the class probabilities, and Y (n, K) the labels as shares of each class, one-hot for hard labels. The
    result has the probabilities of m other outcomes, such as groups of classes, and which of them occurred ("induced"
    probabilities and outcomes). For a one-hot Y the outcomes must be one-hot too, so that each label has one outcome.
    """

    psi: Psi

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(getattr(self.psi, "__name__", type(self.psi).__name__))

    def probabilities(self, preds: Predictions) -> list[Array]:
        """Return the induced probabilities (n, m); of two outcomes those of the second (n,), for a binary view."""
        induced = self._call_psi(preds.Y, preds.P)[0]
        if induced.ndim != 2 or len(induced) != preds.n or induced.shape[1] < 2:
            raise InputError(
                "TO204",
                "ψ must return probabilities and outcomes of shape (n, m) with m ≥ 2.",
                f"shape {induced.shape} for {preds.n:,} rows",
                "Return the probability of every induced outcome.",
            )
        invalid = np.abs(induced.sum(axis=1) - 1) > 1e-5
        if not np.isfinite(induced).all() or induced.min() < -1e-5 or invalid.any():  # 1 − p may round below 0
            raise InputError(
                "TO204",
                "The probabilities that ψ induces must be ≥ 0 and sum to 1.",
                f"a smallest value of {induced.min():.6g}, {int(invalid.sum()):,} rows that do not sum to 1",
                "Add an outcome for the rest.",
            )
        return [induced[:, 1]] if induced.shape[1] == 2 else [induced]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Return the induced outcome of every label in each row, as ψ maps a row of this label."""
        code = np.empty((preds.n, preds.k), dtype=np.int64)
        for c in range(preds.k):
            one_hot = np.zeros((preds.n, preds.k))
            one_hot[:, c] = 1
            probs, outcomes = self._call_psi(one_hot, preds.P)
            if outcomes.ndim != 2 or outcomes.shape != probs.shape or not _is_one_hot(outcomes):
                raise InputError(
                    "TO204",
                    "For a hard label ψ must return one outcome per row, one-hot.",
                    f"{self.name} for class {preds.classes[c]}",
                    "Every label must lead to exactly one induced outcome.",
                )
            code[:, c] = np.argmax(outcomes, axis=1)
        return [OutcomeCodes(code)]

    def complement_source(self, preds: Predictions, i: int) -> None:
        """None, because the probabilities of ψ need not be sums of class probabilities."""
        return

    def _call_psi(self, Y: Array, P: Array) -> tuple[Array, Array]:
        """Induced probabilities and outcomes, both (n, m), for outcomes Y and probabilities P, both (n, K)."""
        try:
            probs, outcomes = self.psi(Y, P)
            return np.asarray(probs, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise InputError(
                "TO204",
                "ψ takes (Y, P), both (n, K), and returns two arrays of numbers.",
                f"{self.name}: {problem}",
                "Return (probabilities, outcomes), both (n, m).",
            ) from problem


def _is_one_hot(outcomes: Array) -> bool:
    return bool(((outcomes == 0) | (outcomes == 1)).all() and (outcomes.sum(axis=1) == 1).all())


# Names, and an example of each pattern.
add_synonyms(
    {
        "positive": ("binary", "event", "positive class", "pos label"),
        "confidence": ("max prob", "max probability", "top 1", "winner"),
        "classwise": ("marginal", "per class", "one vs rest", "ovr", "macro"),
        "canonical": ("strong", "joint", "full distribution", "vector"),
        "canonical | classwise | confidence": ("multiclass", "multi class"),
    }
)
_TYPES_BY_NAME: dict[str, type[Lens]] = {
    "canonical": Canonical,
    "confidence": Confidence,
    "positive": Positive,
    "classwise": Classwise,
    "top-label": TopLabel,
}


def as_lens(lens: str | Lens | Psi) -> Lens:
    """Resolve a lens from its name or a user-defined ψ.

    >>> [str(as_lens(name)) for name in ("confidence", "top-2", "rank:2", "class:cat", "groups:[[0,1],[2]]")]
    ['confidence', 'top-2', 'rank:2', 'class:cat', 'groups:[[0,1],[2]]']
    """
    if isinstance(lens, Lens):
        return lens
    if callable(lens):
        return Custom(lens)
    if not isinstance(lens, str):
        raise InputError(
            "TO204", "`lens` must be a name, a Lens or a callable.", describe(lens), f"Names: {', '.join(LENS_NAMES)}."
        )
    if lens in _TYPES_BY_NAME:
        return _TYPES_BY_NAME[lens]()
    for prefix, lens_type in (("top-", TopK), ("rank:", Rank)):
        if lens.startswith(prefix) and (size := parse_digits(lens.removeprefix(prefix))) is not None:
            return lens_type(size)
    if match := re.fullmatch(r"class:(.+)", lens, re.DOTALL):
        return Class(match[1])
    if lens.startswith("groups:"):
        return Groups(_parse_blocks(lens))
    raise InputError("TO204", "Unknown lens.", describe(lens), suggest_names(lens[:80], LENS_NAMES))


def _parse_blocks(text: str) -> tuple[tuple[Any, ...], ...]:
    try:
        blocks = json.loads(text.removeprefix("groups:"))
        return check("groups:", blocks, tuple[tuple[ClassName, ...], ...])
    except (ValueError, RecursionError):  # of which an InputError is one
        raise InputError(
            "TO204", "groups: takes a list of lists of classes.", describe(text), "For instance groups:[[0,1],[2]]."
        ) from None


class HasClasses(Protocol):
    """Predictions or a tally, on which the default lens depends."""

    @property
    def kind(self) -> str: ...

    @property
    def k(self) -> int: ...


def default_lens(preds: HasClasses) -> Lens:
    """Default lens: positive for two classes, confidence for more, class-wise for independent labels."""
    if preds.kind == "multilabel":
        return Classwise()
    if preds.kind == "confidence" or preds.k > 2:
        return Confidence()
    return Positive()
