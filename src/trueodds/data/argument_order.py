"""Recognize labels and probabilities passed in the wrong order, and raise an error that states the correct order."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array

SWAP_REMEDY = " take (y_true, y_prob): swap the two arguments."


def refuse_swapped(y: Array, p: Array) -> None:
    if not has_fractions(y):  # the cheaper check first: arguments in the right order need no other
        return
    fix = f"Predictions{SWAP_REMEDY}"
    is_integer_or_text = p.dtype.kind in "biuUS"
    is_integral_float = p.dtype.kind == "f" and not has_fractions(p)
    if y.ndim == 2 and (is_integer_or_text or (p.ndim == 1 and is_integral_float and (p > 1).any())):
        raise InputError(
            "TO109",
            "The arguments look swapped: ⟨y_true⟩ has probabilities, ⟨y_prob⟩ has labels.",
            f"shapes {y.shape} and {p.shape}",
            fix,
        )
    if y.ndim == 1 and p.ndim == 1 and (is_integer_or_text or (is_integral_float and np.isfinite(p).all())):
        if not (np.nanmin(y) >= 0 and np.nanmax(y) <= 1) and len(np.unique(p)) > 2:
            return  # outcomes of a regression and rounded forecasts, which are no labels of two classes
        raise InputError(
            "TO109",
            "The arguments look swapped: ⟨y_true⟩ has fractions, ⟨y_prob⟩ has whole numbers.",
            f"⟨y_true⟩ starts {y[:3].tolist()}, ⟨y_prob⟩ starts {p[:3].tolist()}",
            fix,
        )


def restate_called_order(problem: InputError, fix: str) -> InputError:
    """Return the error of swapped arguments with the signature of the called function; other errors are unchanged."""
    if problem.code != "TO109" or problem.fix != f"Predictions{SWAP_REMEDY}":
        return problem
    return InputError(problem.code, problem.problem, problem.got, fix)


def refuse_swapped_confidence(confidence: Array, correct: Array) -> None:
    """Raise an error if the arguments (confidence, correct) of `from_confidence` look swapped."""
    if (
        correct.dtype.kind == "f"
        and has_fractions(correct)
        and (confidence.dtype.kind in "biu" or not has_fractions(confidence))
    ):
        raise InputError(
            "TO109",
            "The arguments look swapped: correct has fractions, confidence has 0 and 1.",
            f"correct starts {correct[:3].tolist()}",
            "⟨Call from_confidence(confidence, correct)⟩.",
        )


def refuse_swapped_multilabel(y: Array, p: Array) -> None:
    """Raise an error if the arguments (Y, P) of `from_multilabel` look swapped."""
    if y.dtype.kind == "f" and has_fractions(y) and (p.dtype.kind in "biu" or not has_fractions(p)):
        raise InputError(
            "TO109",
            "The arguments look swapped: Y has fractions, P has 0 and 1.",
            f"Y starts {y[:1].tolist()}, P starts {p[:1].tolist()}",
            "⟨Call from_multilabel(Y, P)⟩.",
        )


def has_fractions(x: Array) -> bool:
    if x.dtype.kind != "f":
        return False
    finite = x[np.isfinite(x)]
    return bool((finite != np.rint(finite)).any())
