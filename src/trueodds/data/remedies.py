"""Remedies of input errors that name an argument of `Predictions`, and how other functions spell them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trueodds.core.errors import InputError, spell

LOGITS_REMEDY = "⟨use Predictions.from_logits, or read(…, logits=True)⟩"  # hint if logits are passed as probabilities


_PREDICTIONS_CALL = "Predictions(y_true, y_prob, "


def predictions_call(argument: str) -> str:
    """Return the call of `Predictions` that passes an argument, marked as code in remedies of errors.

    Most functions that take `y_true` and `y_prob` do not have this argument themselves; for those that do,
    `restate_own_arguments` replaces the call by the argument.

    >>> predictions_call("sum_tolerance=0.02")
    '⟨Predictions(y_true, y_prob, sum_tolerance=0.02)⟩'
    """
    return f"⟨{_PREDICTIONS_CALL}{argument})⟩"


def restate_own_arguments(
    problem: InputError, logits: str = "logits=True", rounded_rows: str | None = None
) -> InputError:
    """Return the same error with the remedy for a function that has the arguments of `Predictions` itself.

    `logits` is the argument by which that function reads logits, instead of `Predictions.from_logits`, and
    `rounded_rows` what to pass for rounded probabilities if it has no `sum_tolerance`.

    >>> error = InputError("TO104", "Wrong sums.", fix=f"Pass {predictions_call('sum_tolerance=0.02')}.")
    >>> restate_own_arguments(error).fix
    'Pass sum_tolerance=0.02.'
    """

    def own_argument(code: str) -> str:
        if f"⟨{code}⟩" == LOGITS_REMEDY:
            return f"pass ⟨{logits}⟩"
        if not code.startswith(_PREDICTIONS_CALL):
            return f"⟨{code}⟩"
        argument = code.removeprefix(_PREDICTIONS_CALL)[:-1].replace("[…]", "")
        return rounded_rows if rounded_rows and argument.startswith("sum_tolerance=") else f"⟨{argument}⟩"

    return InputError(problem.code, problem.problem, problem.got, spell(problem.fix, own_argument))


def count_phrase(count: int) -> str:
    """Return the number of such values in parentheses, for the end of `got`."""
    return f" ({count:,} such {'value' if count == 1 else 'values'})"


_COMMA_REMEDY = "replace it by a point and convert the texts to numbers"
# What texts instead of numbers look like, and the remedies.
_NUMBER_TEXT_REMEDIES = (
    (r"\s*[\d.,]+\s*%\s*", "These are percentages as text: remove the % and divide by 100."),
    (r"\s*[-+]?\d*,\d+(e[-+]?\d+)?\s*", "This is a decimal comma: {}."),
    (r"\s*\*[\d.,]+\s*", "Remove the star, with which Weka marks the predicted class."),
    (r"\s*[\[(].*[\])]\s*", "These are lists as text: write one column of numbers for each class."),
    (r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", "These are numbers as text: convert them, for example by astype(float)."),
)


def number_text_remedies(texts: Sequence[str], comma_remedy: str = _COMMA_REMEDY) -> list[str]:
    """Return the remedy for texts instead of numbers, from what they look like; empty if they look like no number.

    `comma_remedy` is the one for a decimal comma.

    >>> number_text_remedies(["74.4%"]), number_text_remedies(["cat"])
    (['These are percentages as text: remove the % and divide by 100.'], [])
    """
    for pattern, remedy in _NUMBER_TEXT_REMEDIES:
        if all(re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL) for text in texts):
            return [remedy.format(comma_remedy)]
    return []
