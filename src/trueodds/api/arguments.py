"""Resolve the arguments of the public functions: two arrays as a pair, method and settings, lens, region and seed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.signatures import argument_error, describe_row_argument, keyword_names, too_many_arguments_error
from trueodds.core.suggestions import did_you_mean, list_names, resolve_synonym
from trueodds.data import argument_order
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.io.models import is_array, is_model, is_pair
from trueodds.io.source import Source
from trueodds.lenses.base import Lens
from trueodds.lenses.lens_by_name import as_lens, default_lens
from trueodds.lenses.region import select_region
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.diagrams.recipe import Recipe


def resolve_method(registry: Any, base_class: type, method: Any, settings: dict[str, Any]) -> Any:
    """Return the method with this name and these settings; an instance of `base_class` is returned as it is."""
    is_name = isinstance(method, str) and method in registry.names()
    for name in settings:
        hint = describe_row_argument(name)
        if hint is not None and not (is_name and registry.has_setting(method, name)):
            raise InputError("TO202", f"`{name}` is not a setting of this call.", "", hint)
    if isinstance(method, base_class):
        if settings:
            raise InputError(
                "TO202",
                "Settings cannot be combined with an instance.",
                ", ".join(settings),
                "Set them on the instance, or pass the method by name.",
            )
        return method
    if not isinstance(method, str):
        is_list_of_methods = isinstance(method, (list, tuple)) and all(
            isinstance(item, (str, base_class)) for item in method
        )
        if is_list_of_methods:
            fix = f"Call it once per {registry.kind}."
        elif is_array(method):
            fix = f"Pass Predictions(y_true, y_prob) as one argument, then a name such as {registry.names()[0]!r}."
        else:
            fix = list_names(registry.names())
        raise InputError("TO201", f"{registry.kind} must be a name or an instance.", describe(method), fix)
    return registry.make(method, settings)


def add_seed(estimator: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Add the seed of the call to the settings of an estimator that assigns rows to folds.

    `rng` is as passed to the call; if it is a generator, a seed is drawn from `generator`.
    """
    if not isinstance(estimator, str) or "rng" in settings or estimator not in ESTIMATORS.names():
        return settings
    if not ESTIMATORS.has_setting(estimator, "rng"):
        return settings
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    return settings | {"rng": seed}


def add_test_seed(test: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """Add the seed of the call to the settings of a test whose statistic is randomized, such as by folds."""
    if isinstance(test, str) and test == "consistency":
        return add_seed(settings.get("statistic", "ece"), settings, rng, generator)
    takes_seed = isinstance(test, str) and test in TESTS.names() and TESTS.has_setting(test, "rng")
    return add_seed(test, settings, rng, generator) if takes_seed else settings


def resolve_lens(rows: Predictions | Tally, lens: Any, method: Estimator | HypothesisTest | Recipe | None) -> Lens:
    """Return the given lens, else the method's own, else the default: positive for two classes, confidence for more."""
    if isinstance(lens, (list, tuple)):
        fix = "Call it once per lens; only test takes several, which it tests jointly."
        raise InputError("TO204", "This function takes one lens.", describe(lens), fix)
    if lens is not None:
        return as_lens(lens)
    if method is not None and method.lens and rows.kind == "classes":
        return as_lens(method.lens)
    return default_lens(rows)


def restrict_to_region(rows: Predictions | Tally, region: Any) -> Any:
    """Return the rows whose predictions lie in a region of the simplex; all rows if it is None."""
    if region is None:
        return rows
    if isinstance(rows, Tally):
        raise InputError(
            "TO403",
            "A region of the simplex needs the rows.",
            f"region={describe(region)} of a tally",
            "Use mode='exact'.",
        )
    return select_region(rows, region)


def reported_call_settings(rng: Any, rows: Predictions | Tally, weight_kind: str, region: Any = None) -> dict[str, Any]:
    """Return the arguments of the call that the settings of its result report: seed, region and weight kind."""
    settings: dict[str, Any] = {"seed": int(rng) if isinstance(rng, (int, np.integer)) else "generator"}
    if region is not None:
        settings["region"] = (
            region if isinstance(region, str) else getattr(region, "__name__", None) or describe(region)
        )
    if weight_kind != "importance" or (isinstance(rows, Predictions) and rows.weight is not None):
        settings["weight_kind"] = weight_kind
    return settings


def data_notes(*rows: Predictions | Tally) -> list[Note]:
    """Return the notes of validation and of the plausibility checks."""
    return [
        note for preds in rows if isinstance(preds, Predictions) for note in (*preds.notes, *plausibility_notes(preds))
    ]


PublicFunction = TypeVar("PublicFunction", bound=Callable[..., Any])


def pairs_arrays(function: PublicFunction) -> PublicFunction:
    """Let a function take `y_true, y_prob` where its first parameter is the pair `(y_true, y_prob)`.

    `help` and type checkers see the signature as it is written, with one parameter for the data.
    """
    return _accept_reordered_arguments(function, pair_arrays)


def pairs_models(function: PublicFunction) -> PublicFunction:
    """Let a function of several models take `y_true` once, before the probabilities of each model."""
    return _accept_reordered_arguments(function, pair_model_arrays)


def pair_arrays(*args: Any) -> tuple[Any, ...]:
    """Combine `y_true, y_prob` into one argument; `y_true` and a mapping of arrays become a mapping of models.

    Invalid data are paired too, so that `Predictions` raises the error.

    >>> pair_arrays([0, 1], [0.2, 0.7], "ece")
    (([0, 1], [0.2, 0.7]), 'ece')
    >>> pair_arrays([0, 1], {"a": [0.2, 0.7]}, "brier")
    ({'a': ([0, 1], [0.2, 0.7])}, 'brier')
    """
    if len(args) < 2 or is_model(args[0]) or is_pair(args[0]) or _is_method(args[1]):
        return args
    y_true, y_prob, *rest = args
    if isinstance(y_prob, Mapping) and y_prob and all(is_array(prob) for prob in y_prob.values()):
        return ({name: (y_true, prob) for name, prob in y_prob.items()}, *rest)
    return ((y_true, y_prob), *rest)


def pair_model_arrays(*args: Any) -> tuple[Any, ...]:
    """Combine the arrays of several models; `y_true` and a list of arrays become a list of models.

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
    has_no_other_model = not rest or _is_method(rest[0]) or _are_methods(rest[0])
    if (
        is_list_of_arrays and has_no_other_model and any(len(prob) == len(y_true) for prob in second)
    ):  # else these are rows of one model
        return ([(y_true, prob) for prob in second], *rest)
    if isinstance(second, Mapping):
        return pair_arrays(*args)
    if is_model(second):
        return args
    if rest and not (_is_method(rest[0]) or is_model(rest[0]) or (is_pair(rest[0]) and len(y_true) != 2)):
        rest[0] = (y_true, rest[0])  # the other model, of the same outcomes
    return pair_arrays(y_true, second, *rest)


def _is_list_of_models(x: Any) -> bool:
    """Return whether this is a list of pairs and models; strings are labels, not files."""
    if not isinstance(x, (list, tuple)):
        return False
    return len(x) > 0 and all(is_pair(item) or (is_model(item) and not isinstance(item, str)) for item in x)


# By the function that pairs arrays: the calls that an error suggests.
_EXAMPLE_CALLS = {
    pair_arrays: "Call {name}(y_true, y_prob), or {name}(preds).",
    pair_model_arrays: "Call {name}(y_true, p_a, p_b), or {name}(a, b).",
}


def _accept_reordered_arguments(
    function: PublicFunction, combine_arrays: Callable[..., tuple[Any, ...]]
) -> PublicFunction:
    """Wrap a public function so that `combine_arrays` combines the arrays among its positional arguments.

    It gets the positional arguments, with `y_true` and `y_prob` inserted if they were passed by keyword, and returns
    those of the function.
    """
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
        positional = combine_arrays(*args)
        if len(positional) > len(positional_names):
            fix = "The data are one model, (y_true, y_prob) or y_true, y_prob; settings are given by name."
            raise too_many_arguments_error(name, positional_names, len(positional), fix)
        if not positional and positional_names[0] not in settings:
            raise InputError(
                "TO202", f"{name} needs predictions.", "no argument", _EXAMPLE_CALLS[combine_arrays].format(name=name)
            )
        try:
            signature.bind(*positional, **settings)
        except TypeError as problem:
            raise argument_error(name, signature, positional, settings, str(problem)) from None
        try:
            return function(*positional, **settings)
        except InputError as problem:
            order = f"{name} takes (y_true, y_prob): swap the two arguments."
            restated = argument_order.restate_called_order(_add_keyword_hint(problem, settings, keywords), order)
            if positional and isinstance(positional[0], Tally):
                restated = _restate_for_tally(restated)
            if restated is problem:
                raise
            raise restated from None

    return cast(PublicFunction, with_paired_arrays)


def _is_method(x: Any) -> bool:
    """Return whether an argument is a method or its name, or a model, and therefore not an array."""
    return isinstance(x, (str, Predictions, Source, Tally)) or callable(x) or is_dataclass(x) or hasattr(x, "make_spec")


def _are_methods(x: Any) -> bool:
    """Return whether an argument is a list, an array or a mapping of methods and their names."""
    methods = list(x.values()) if isinstance(x, Mapping) else x
    return isinstance(methods, (list, tuple, np.ndarray)) and len(methods) > 0 and all(map(_is_method, methods))


def _add_keyword_hint(problem: InputError, settings: Mapping[str, Any], keywords: Sequence[str]) -> InputError:
    """Add to the error of an unknown setting the hint that a keyword of the function may be meant."""
    unknown = next((name for name in settings if problem.code == "TO202" and repr(name) in problem.problem), None)
    if unknown is None:
        return problem
    lists_names = problem.fix.startswith(("Known", "It has no"))
    if not (resolve_synonym(unknown, keywords) or lists_names) or not (hint := did_you_mean(unknown, keywords)):
        return problem
    return InputError(problem.code, problem.problem, problem.got, hint)


# Remedies for rows that were tallied, and those for a tally that was passed.
_TALLY_REPLACEMENTS = (
    ("Use mode='exact'", "Pass the predictions"),
    ("use mode='exact'", "pass the predictions"),
    ("the rows: mode='exact'", "pass the predictions"),
    ("or mode='exact'", "or pass the predictions"),
)


def _restate_for_tally(problem: InputError) -> InputError:
    """Return the error of a tally that the caller passed, for which `mode='exact'` is no remedy."""
    fix = reduce(lambda text, words: text.replace(*words), _TALLY_REPLACEMENTS, problem.fix)
    return problem if fix == problem.fix else InputError(problem.code, problem.problem, problem.got, fix)
