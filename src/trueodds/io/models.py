"""Is what was handed in one model, a pair of arrays, or several models by name?"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import wraps
from pathlib import PurePath
from typing import Any, TypeVar, cast

from trueodds.core.errors import InputError
from trueodds.core.registry import did_you_mean
from trueodds.data import swapped
from trueodds.data.class_columns import column_names
from trueodds.data.predictions import Predictions
from trueodds.io.source import Source
from trueodds.tallies.tally import Tally

Verb = TypeVar("Verb", bound=Callable[..., Any])


def is_model(x: Any) -> bool:
    """Whether it holds outcomes and probabilities by itself: Predictions, a Source, a Tally, a path, a table, a mapping."""
    if isinstance(x, (Predictions, Source, Tally, str, PurePath, Mapping)):
        return True
    return has_label(x) or (hasattr(x, "columns") and not hasattr(x, "__array__"))  # lazy frames and relations


def has_label(x: Any) -> bool:
    """Whether it is a data frame or a mapping of columns, one of which is the label; other frames are arrays."""
    names = [str(name) for name in x] if isinstance(x, Mapping) else column_names(x) or []
    return len(names) > 1 and ("label" in names or (isinstance(x, Mapping) and "labels" in names))


def is_pair(data: Any) -> bool:
    """Whether this is a tuple (y_true, y_prob) of two arrays, not a tuple of two models.

    >>> is_pair(([0, 1], [0.2, 0.7])), is_pair((([0, 1], [0.2, 0.7]), ([0, 1], [0.5, 0.5]))), is_pair(("a.csv", "b.csv"))
    (True, False, False)
    """
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    return is_array(data[0]) and (is_array(data[1]) or is_pair(data[1]))  # two rows as tuples look like a pair


def is_array(x: Any) -> bool:
    """Whether it holds one value or row per prediction: a list, an array, a column of a frame, a frame of columns."""
    if isinstance(x, Sequence) and not isinstance(x, (str, bytes)):
        return not is_pair(x) and not (len(x) > 0 and isinstance(x[0], (Predictions, Source, Tally, PurePath)))
    return hasattr(x, "__array__") and getattr(x, "ndim", 1) > 0 and not has_label(x)


def models_of(data: Any) -> dict[str, Any] | None:
    """Several models by their names; None where it is one, such as a mapping of columns."""
    if not isinstance(data, Mapping):
        return None
    known = any(isinstance(model, (Predictions, Source, Tally)) for model in data.values())
    if known or (data and all(is_model(model) or is_pair(model) for model in data.values())):
        return {str(name): model for name, model in data.items()}
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
    return _arranged(verb, in_pairs)


def pairs_models(verb: Verb) -> Verb:
    """Let a verb that takes several models take `y_true` once, before the probabilities of each."""
    return _arranged(verb, in_comparison)


def in_pairs(*args: Any) -> tuple[Any, ...]:
    """The arguments with `y_true, y_prob` put together; `y_true` with a mapping of arrays is a mapping of models.

    What is no data is paired all the same: Predictions says what is wrong with it.

    >>> in_pairs([0, 1], [0.2, 0.7], "ece")
    (([0, 1], [0.2, 0.7]), 'ece')
    >>> in_pairs([0, 1], {"a": [0.2, 0.7]}, "brier")
    ({'a': ([0, 1], [0.2, 0.7])}, 'brier')
    """
    if len(args) < 2 or is_model(args[0]) or is_pair(args[0]) or _is_method(args[1]):
        return args
    y_true, y_prob, *rest = args
    if isinstance(y_prob, Mapping) and y_prob and all(is_array(prob) for prob in y_prob.values()):
        return ({name: (y_true, prob) for name, prob in y_prob.items()}, *rest)
    return ((y_true, y_prob), *rest)


def in_comparison(*args: Any) -> tuple[Any, ...]:
    """The same for several models: `y_true` with a list of arrays is a list of models, unless another model follows.

    >>> in_comparison([0, 1], [[0.2, 0.7], [0.4, 0.6]], "brier")
    ([([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6])], 'brier')
    >>> in_comparison(([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6]))
    (([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6]))
    """
    if len(args) < 2 or not is_array(args[0]):
        return args
    y_true, several, *rest = args
    listed = isinstance(several, (list, tuple)) and len(several) > 1 and all(map(is_array, several))
    no_other = not rest or _is_method(rest[0])
    if listed and no_other and any(len(prob) == len(y_true) for prob in several):  # else these are rows of one model
        return ([(y_true, prob) for prob in several], *rest)
    if isinstance(several, Mapping):
        return in_pairs(*args)
    if is_model(several):
        return args
    if rest and not (_is_method(rest[0]) or is_model(rest[0]) or (is_pair(rest[0]) and len(y_true) != 2)):
        rest[0] = (y_true, rest[0])  # the other model, of the same outcomes
    return in_pairs(y_true, several, *rest)


def _arranged(verb: Verb, arrange: Callable[..., tuple[Any, ...]]) -> Verb:
    parameters = inspect.signature(verb).parameters.items()
    keywords = [name for name, parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, parameter in parameters if parameter.kind in kinds]
    name = getattr(verb, "__name__", "")

    @wraps(verb)
    def arranged(*args: Any, **settings: Any) -> Any:
        for place, array in enumerate(("y_true", "y_prob")):
            if array in settings:
                args = (*args[:place], settings.pop(array), *args[place:])
        positional = arrange(*args)
        if len(positional) > len(names):
            raise InputError(
                "TO202",
                f"{name} takes at most {len(names)} positional arguments: {', '.join(names)}.",
                f"{len(positional)} arguments",
                "The data are one model, (y_true, y_prob) or y_true, y_prob; settings are given by name.",
            )
        try:
            return verb(*positional, **settings)
        except InputError as problem:
            order = f"{name} takes (y_true, y_prob): swap the two arguments."
            hinted = swapped.called(_hinted(problem, settings, keywords), order)
            if hinted is problem:
                raise
            raise hinted from None

    return cast(Verb, arranged)


def _is_method(x: Any) -> bool:
    """Whether it names or is an estimator, a test, a calibrator or a diagram, or a model, and so no array."""
    return isinstance(x, (str, Predictions, Source, Tally)) or callable(x) or is_dataclass(x) or hasattr(x, "made")


def _hinted(problem: InputError, settings: Mapping[str, Any], keywords: Sequence[str]) -> InputError:
    """The same refusal of an unknown setting, with the hint that it may be one of the verb's own keywords."""
    unknown = next((name for name in settings if problem.code == "TO202" and problem.got == repr(name)), None)
    if (
        unknown is None
        or not problem.fix.startswith(("Known", "It has no"))
        or not (hint := did_you_mean(unknown, keywords))
    ):
        return problem
    return InputError(problem.code, problem.problem, problem.got, hint)
