"""Decorators by which public functions accept `y_true, y_prob` as two arguments, and adapt their errors to that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import reduce, wraps
from typing import Any, TypeVar, cast

import numpy as np

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError
from trueodds.core.signatures import (
    add_keyword_hint,
    argument_error,
    describe_mismatch,
    keyword_names,
    too_many_arguments_error,
)
from trueodds.data import arrays
from trueodds.io.models import DATA_TYPES, is_array, is_model, is_pair, refuse_classifiers
from trueodds.tallies.tally import Tally

PublicFunction = TypeVar("PublicFunction", bound=Callable[..., Any])


def accept_separate_arrays(function: PublicFunction) -> PublicFunction:
    """Decorate a function of data, its first parameter, so that it also accepts `y_true, y_prob` as two arguments.

    `measure(y_true, y_prob, "ece")` then calls `measure((y_true, y_prob), "ece")`. `help` and type checkers see the
    signature as it is written, with one parameter for the data.
    """
    return _accept_combined_arguments(function, pair_arrays)


def accept_arrays_of_models(function: PublicFunction) -> PublicFunction:
    """Decorate a function of several models so that it also accepts `y_true` once, and the probabilities of each model.

    `compare(y_true, p_a, p_b)` then calls `compare((y_true, p_a), (y_true, p_b))`.
    """
    return _accept_combined_arguments(function, pair_model_arrays)


def pair_arrays(*args: Any) -> tuple[Any, ...]:
    """Combine `y_true, y_prob` into one argument; `y_true` and a mapping of arrays become a mapping of models.

    Invalid data are paired too, so that `Predictions` raises the error.

    >>> pair_arrays([0, 1], [0.2, 0.7], "ece")
    (([0, 1], [0.2, 0.7]), 'ece')
    >>> pair_arrays([0, 1], {"a": [0.2, 0.7]}, "brier")
    ({'a': ([0, 1], [0.2, 0.7])}, 'brier')
    >>> pair_arrays([0, 1], {"a": {"before": [0.2, 0.7]}})
    ({'a': {'before': ([0, 1], [0.2, 0.7])}},)
    """
    if len(args) < 2 or is_model(args[0]) or is_pair(args[0]) or _is_method_or_model(args[1]):
        return args
    y_true, y_prob, *rest = args
    if _is_mapping_of_arrays(y_prob, has_versions=True) and len(y_prob) > 0:
        models = {
            name: (y_true, model) if is_array(model) else {version: (y_true, prob) for version, prob in model.items()}
            for name, model in y_prob.items()
        }
        return (models, *rest)
    return ((y_true, y_prob), *rest)


def _is_mapping_of_arrays(x: Any, *, has_versions: bool) -> bool:
    """Return whether an argument is a mapping of arrays, or also of mappings of them, the versions of each model."""
    return isinstance(x, Mapping) and all(
        is_array(value) or (has_versions and _is_mapping_of_arrays(value, has_versions=False)) for value in x.values()
    )


def pair_model_arrays(*args: Any) -> tuple[Any, ...]:
    """Combine `y_true` with the arrays of two models into two pairs, and with a list of arrays into a list of pairs.

    Two arguments that are pairs or models already are returned as they are.

    >>> pair_model_arrays([0, 1], [[0.2, 0.7], [0.4, 0.6]], "brier")
    ([([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6])], 'brier')
    >>> pair_model_arrays(([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6]))
    (([0, 1], [0.2, 0.7]), ([0, 1], [0.4, 0.6]))
    >>> pair_model_arrays([([0, 1], [0.2, 0.7])], ["brier"])
    ([([0, 1], [0.2, 0.7])], ['brier'])
    """
    if len(args) < 2 or not is_array(args[0]) or _is_list_of_models(args[0]):
        return args
    y_true, second, *rest = args
    is_list_of_arrays = isinstance(second, (list, tuple)) and len(second) > 1 and all(map(is_array, second))
    has_no_third_model = not rest or _is_method_or_model(rest[0]) or _is_collection_of_methods(rest[0])
    if is_list_of_arrays and has_no_third_model:
        # Arrays of another length are rows of the probabilities of one model.
        is_list_of_models = any(len(prob) == len(y_true) for prob in second)
        if is_list_of_models:
            return ([(y_true, prob) for prob in second], *rest)
    if isinstance(second, Mapping):
        return pair_arrays(*args)
    if is_model(second):
        return args
    if rest:
        third = rest[0]
        is_pair_already = is_pair(third) and len(y_true) != 2  # an array of two rows looks like a pair
        if not (_is_method_or_model(third) or is_model(third) or is_pair_already):
            rest[0] = (y_true, third)
    return pair_arrays(y_true, second, *rest)


def _is_list_of_models(x: Any) -> bool:
    """Return whether an argument is a list of pairs and models; a list of strings is one of labels, not of files."""
    if not isinstance(x, (list, tuple)):
        return False
    return len(x) > 0 and all(is_pair(item) or (is_model(item) and not isinstance(item, str)) for item in x)


# The calls that an error suggests, by the function that combines the arrays.
_EXAMPLE_CALLS = {
    pair_arrays: "Call {name}(y_true, y_prob), or {name}(preds).",
    pair_model_arrays: "Call {name}(y_true, p_a, p_b), or {name}(a, b).",
}


def _accept_combined_arguments(
    function: PublicFunction, combine_arrays: Callable[..., tuple[Any, ...]]
) -> PublicFunction:
    """Wrap a public function so that its positional arguments are the results of `combine_arrays`.

    `combine_arrays` gets the positional arguments of the call, after `y_true` and `y_prob` have been inserted if they
    were passed by keyword.
    """
    insert_shared_parameters(function)
    signature, name = inspect.signature(function), getattr(function, "__name__", "")
    keywords = keyword_names(signature.parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional_names = [key for key, parameter in signature.parameters.items() if parameter.kind in kinds]

    @wraps(function)
    def with_paired_arrays(*args: Any, **settings: Any) -> Any:
        """Pair the arrays, check the arguments, and adapt the remedies of errors to this call."""
        for position, array in enumerate(("y_true", "y_prob")):
            if array in settings:
                args = (*args[:position], settings.pop(array), *args[position:])
        positional = args
        if not all(isinstance(arg, (str, *DATA_TYPES)) for arg in args):  # models and methods by name stay as they are
            refuse_classifiers(*args)
            positional = combine_arrays(*args)
        if len(positional) > len(positional_names):
            fix = "The data are one model, (y_true, y_prob) or y_true, y_prob; settings are given by name."
            raise too_many_arguments_error(name, positional_names, len(positional), fix)
        if not positional and positional_names[0] not in settings:
            raise InputError(
                "TO202", f"{name} needs predictions.", "no argument", _EXAMPLE_CALLS[combine_arrays].format(name=name)
            )
        try:
            return function(*positional, **settings)
        except TypeError:
            if mismatch := describe_mismatch(signature, positional, settings):
                raise argument_error(name, signature, positional, settings, mismatch) from None
            raise
        except InputError as problem:
            order = f"{name} takes (y_true, y_prob): swap the two arguments."
            restated = arrays.restate_called_order(add_keyword_hint(problem, settings, keywords), order)
            if positional and isinstance(positional[0], Tally):
                restated = _restate_for_tally(restated)
            if restated is problem:
                raise
            raise restated from None

    return cast(PublicFunction, with_paired_arrays)


def _is_method_or_model(x: Any) -> bool:
    """Return whether an argument is a method (or its name, or a function) or a model, and therefore not an array."""
    return isinstance(x, (str, *DATA_TYPES)) or callable(x) or is_dataclass(x) or hasattr(x, "make_spec")


def _is_collection_of_methods(x: Any) -> bool:
    """Return whether an argument is a nonempty list, array or mapping of methods."""
    methods = list(x.values()) if isinstance(x, Mapping) else x
    is_list = isinstance(methods, (list, tuple, np.ndarray)) and len(methods) > 0
    return is_list and all(map(_is_method_or_model, methods))


# Remedies in errors of rows that were tallied by the call, and what they are if the caller passed a tally.
_TALLY_REPLACEMENTS = (
    ("Use ⟨mode='exact'⟩", "Pass the predictions"),
    ("use ⟨mode='exact'⟩", "pass the predictions"),
    ("the rows: ⟨mode='exact'⟩", "pass the predictions"),
    ("or ⟨mode='exact'⟩", "or pass the predictions"),
)


def _restate_for_tally(problem: InputError) -> InputError:
    """Return the error with a remedy for a tally that the caller passed, for which `mode='exact'` is none."""
    fix = reduce(lambda text, words: text.replace(*words), _TALLY_REPLACEMENTS, problem.fix)
    return problem if fix == problem.fix else InputError(problem.code, problem.problem, problem.got, fix)
