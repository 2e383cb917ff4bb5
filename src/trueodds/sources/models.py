"""Is what was handed in one model, a pair of arrays, or several models by name?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import PurePath
from typing import Any, TypeVar, cast

from trueodds.core.errors import InputError
from trueodds.problem.predictions import Predictions
from trueodds.sources.source import Source
from trueodds.tally.tally import Tally

Verb = TypeVar("Verb", bound=Callable[..., Any])


def is_pair(data: Any) -> bool:
    """Whether this is a tuple (y_true, y_prob) of two arrays, not a tuple of two models.

    >>> is_pair(([0, 1], [0.2, 0.7])), is_pair((([0, 1], [0.2, 0.7]), ([0, 1], [0.5, 0.5]))), is_pair(("a.csv", "b.csv"))
    (True, False, False)
    """
    return isinstance(data, tuple) and len(data) == 2 and all(is_array(each) for each in data)


def is_array(x: Any) -> bool:
    """Whether it holds one value or row per prediction: a list, an array, a column of a frame."""
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and not is_pair(x) and not isinstance(x[0], (Predictions, Source, Tally, PurePath))
    return hasattr(x, "__array__") and getattr(x, "ndim", 1) > 0


def models_of(data: Any) -> dict[str, Any] | None:
    """Several models by their names; None where it is one, such as a mapping of columns."""
    if not isinstance(data, Mapping):
        return None
    known = any(isinstance(each, (Predictions, Source, Tally)) for each in data.values())
    if known or (data and all(isinstance(each, (str, PurePath)) or is_pair(each) for each in data.values())):
        return {str(name): each for name, each in data.items()}
    return None


def refuse_several(data: Any) -> None:
    """Refuse several models where one is asked for."""
    if models := models_of(data):
        raise InputError(
            "TO205",
            "Several models were given where one is asked for.",
            f"{len(models)} models: {', '.join(models)}",
            "Ask each by itself; to.compare(models) ranks them, to.draw(models, 'comparison') shows them together.",
        )


def pairs_arrays(verb: Verb) -> Verb:
    """Let a verb take `y_true, y_prob` where its first argument is the pair `(y_true, y_prob)`.

    `help` and type checkers see the verb as it is written, with one argument for the data.
    """

    @wraps(verb)
    def paired(*args: Any, **settings: Any) -> Any:
        return verb(*in_pairs(*args), **settings)

    return cast(Verb, paired)


def in_pairs(*args: Any) -> tuple[Any, ...]:
    """The arguments with `y_true, y_prob` put together; `y_true` with a mapping of arrays is a mapping of models.

    >>> in_pairs([0, 1], [0.2, 0.7], "ece")
    (([0, 1], [0.2, 0.7]), 'ece')
    >>> in_pairs([0, 1], {"a": [0.2, 0.7]}, "brier")
    ({'a': ([0, 1], [0.2, 0.7])}, 'brier')
    """
    if len(args) < 2 or not is_array(args[0]):
        return args
    y_true, y_prob, *rest = args
    if isinstance(y_prob, Mapping) and y_prob and all(is_array(each) for each in y_prob.values()):
        return ({name: (y_true, each) for name, each in y_prob.items()}, *rest)
    return ((y_true, y_prob), *rest) if is_array(y_prob) else args
