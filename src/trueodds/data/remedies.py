"""Remedies of input errors that name an argument of `Predictions`, and their restatement for other functions."""

from __future__ import annotations

import re

from trueodds.core.errors import InputError

LOGITS_REMEDY = "use Predictions.from_logits, or read(…, logits=True)"  # hint if logits are passed as probabilities


def predictions_call(argument: str) -> str:
    """Return the call of `Predictions` that passes an argument, for remedies of errors.

    Most functions that take `y_true` and `y_prob` do not have this argument themselves; for those that do,
    `restate_own_arguments` finds this text in the remedy and replaces it.

    >>> predictions_call("sum_tolerance=0.02")
    'Predictions(y_true, y_prob, sum_tolerance=0.02)'
    """
    return f"Predictions(y_true, y_prob, {argument})"


def restate_own_arguments(problem: InputError, logits: str = "logits=True") -> InputError:
    """Return the same error with the remedy for a function that has the arguments of `Predictions` itself.

    `logits` is the argument by which that function reads logits, in place of `Predictions.from_logits`.

    >>> error = InputError("TO104", "Wrong sums.", fix="Pass Predictions(y_true, y_prob, sum_tolerance=0.02).")
    >>> restate_own_arguments(error).fix
    'Pass sum_tolerance=0.02.'
    """
    fix = re.sub(r"Predictions\(y_true, y_prob, (\w+=)(?:\[…\]|([^()]*))\)", r"\1\2", problem.fix)
    return InputError(problem.code, problem.problem, problem.got, fix.replace(LOGITS_REMEDY, f"pass {logits}"))


def count_phrase(count: int) -> str:
    """Return the number of such values in parentheses, for the end of `got`."""
    return f" ({count:,} such {'value' if count == 1 else 'values'})"
