"""Report a call that does not fit a function's signature as an InputError with a suggestion, instead of a TypeError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter
from typing import Any, TypeVar, cast

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError
from trueodds.core.registry import METHOD_FAMILIES, call_by_name
from trueodds.core.suggestions import list_names, resolve_synonym, suggest_setting, translate_setting

F = TypeVar("F", bound=Callable[..., Any])

# Where an argument that describes the rows belongs, if it is passed to a function that does not have it.
_HINT_OF_ROW_ARGUMENT = {
    "weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…), or read(path, weight=…).",
    "group": "Groups belong to the rows: Predictions(y_true, y_prob, group=…), or read(path, group=…); audit and"
    " by_group analyze each group.",
    "cluster": "Clusters belong to the rows: Predictions(y_true, y_prob, cluster=…), or read(path, cluster=…).",
    "classes": "The names of the classes belong to the rows: Predictions(y_true, y_prob, classes=…), or read(path,"
    " classes=…).",
    "sum_tolerance": "The tolerance belongs to the rows: Predictions(y_true, y_prob, sum_tolerance=…), or read(path,"
    " sum_tolerance=…).",
    "logits": "Logits are read by ⟨Predictions.from_logits(y_true, logits)⟩, or read(path, logits=…).",
}
_READING_ARGUMENTS = (
    "label", "probs", "confidence", "correct", "predicted", "multilabel", "votes", "row_id", "missing", "batch_rows",
    "engine", "separator", "decimal",
)  # fmt: skip


def describe_row_argument(name: str) -> str | None:
    """Return where an argument belongs that describes the rows, under any of its usual names; None for any other.

    >>> describe_row_argument("sample_weight")
    'Weights belong to the rows: Predictions(y_true, y_prob, weight=…), or read(path, weight=…).'
    >>> describe_row_argument("label")
    'Columns are named in read: pass read(path, label=…) as the data.'
    >>> describe_row_argument("bins")
    """
    if name in _READING_ARGUMENTS:
        return f"Columns are named in read: pass read(path, {name}=…) as the data."
    arguments = resolve_synonym(name, _HINT_OF_ROW_ARGUMENT)
    return _HINT_OF_ROW_ARGUMENT[arguments[0]] if arguments else None


def checks_arguments(function: F) -> F:
    """Decorate a public function, so that arguments that its signature does not have raise TO202.

    `help`, `inspect` and type checkers see the function as it is written.
    """
    insert_shared_parameters(function)
    signature = inspect.signature(function)
    name, names = function.__qualname__.removesuffix(".__init__"), keyword_names(signature.parameters.values())

    @wraps(function)
    def checked_function(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError:
            if mismatch := describe_mismatch(signature, args, keywords):
                raise argument_error(name, signature, args, keywords, mismatch) from None
            raise
        except InputError as problem:
            if (restated := add_keyword_hint(problem, keywords, names)) is problem:
                raise
            raise restated from None

    return cast(F, checked_function)


def describe_mismatch(signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Return Python's description of why a call does not fit the signature; empty if it fits.

    This takes longer than a call, so it is used once a call has failed.
    """
    try:
        signature.bind(*args, **keywords)
    except TypeError as problem:
        return str(problem)
    return ""


def check_constructor(method: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> None:
    """Raise TO202 for settings that the constructor of a method does not have; missing ones are left to Python."""
    signature = _cached_signature(method.__init__)
    try:
        signature.bind_partial(None, *args, **settings)
    except TypeError as problem:
        error = argument_error(method.__name__, signature, (None, *args), settings, str(problem))
        # Settings of the method by its name, such as `bins`, are not parameters of the constructor.
        setting_by_name = next(
            (name for name in settings if name in method.setting_names() and name not in signature.parameters), None
        )
        if setting_by_name and (call := call_by_name(method, setting_by_name)):
            error = InputError(error.code, error.problem, error.got, f"Pass it with the name: {call}.")
        raise error from None


def checks_method_call(call: F) -> F:
    """Decorate the `__call__` of an estimator, test or diagram, so that other arguments raise TO202.

    Users who call an instance with arrays are referred to the function that takes them, such as `measure`.
    """
    signature = inspect.signature(call)
    accepted_names = ", ".join(list(signature.parameters)[1:])

    @wraps(call)
    def checked_call(self: Any, *args: Any, **keywords: Any) -> Any:
        try:
            return call(self, *args, **keywords)
        except TypeError:
            mismatch = describe_mismatch(signature, (self, *args), keywords)
            if not mismatch:
                raise
            by_name = call_by_name(type(self))
            fix = f"For arrays use {by_name}." if by_name else "Pass these arguments."
            problem_text = f"An instance of {type(self).__name__} is called with ({accepted_names})."
            raise InputError("TO202", problem_text, mismatch, fix) from None

    return cast(F, checked_call)


@cache
def _cached_signature(function: Any) -> inspect.Signature:
    """Return the signature of a function; cached, because constructors are called often."""
    return inspect.signature(function)


def argument_error(
    name: str, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any], problem: str
) -> InputError:
    """Return the error of a call that does not fit the signature of the function `name`.

    `args` and `keywords` are the arguments of the call, and `problem` is Python's description of the error.
    """
    parameters = {key: parameter for key, parameter in signature.parameters.items() if key not in ("self", "cls")}
    n_bound = len(signature.parameters) - len(parameters)  # 1 if the first argument is the object or class
    unknown = [key for key in keywords if key not in keyword_names(parameters.values())]
    if unknown and not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return _unknown_argument_error(name, unknown[0], keywords[unknown[0]], keyword_names(parameters.values()))
    positional_names = [
        key
        for key, parameter in parameters.items()
        if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if "too many positional" in problem:
        return too_many_arguments_error(name, positional_names, len(args) - n_bound)
    passed = {*keywords, *positional_names[: len(args) - n_bound]}
    required = [
        key
        for key, parameter in parameters.items()
        if parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_KEYWORD
    ]
    if missing := [key for key in required if key not in passed]:
        fix = f"Call {name}({', '.join(required)})."
        return InputError("TO202", f"{name} needs {missing[0]}.", ", ".join(sorted(passed)) or "no argument", fix)
    return InputError("TO202", f"{name} cannot be called in this way.", problem, "Pass each argument once.")


def keyword_names(parameters: Any) -> list[str]:
    """Return the names of those `inspect.Parameter` objects that can be passed by keyword."""
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]


def _unknown_argument_error(name: str, argument: str, value: Any, known: Sequence[str]) -> InputError:
    """Return the error of a keyword that a function does not have, with the one that may be meant.

    A setting of an estimator is referred to `measure`, which is how `audit` is called with the number of bins.
    """
    argument = argument[:80]
    makes_predictions = name.startswith(("Predictions", "read")) and argument in _READING_ARGUMENTS
    hint = None if makes_predictions or resolve_synonym(argument, known) else describe_row_argument(argument)
    fix = hint or suggest_setting(argument, value, known) or _suggest_measure(argument, value)
    fix = fix or (list_names(known) if known else "It takes no keywords.")
    return InputError("TO202", f"{name} has no argument {argument!r}.", "", fix)


def _suggest_measure(argument: str, value: Any) -> str:
    """Return the call of `measure` that takes a setting of the binned error, or a lens; empty for any other name."""
    settings = ("lens", *METHOD_FAMILIES["estimator"].load_registry().settings_of("ece"))
    names = resolve_synonym(argument, settings)
    assigned = translate_setting(argument, value, settings) or "".join(f"{name}=…" for name in names[:1])
    return f"That is a setting of ⟨to.measure(preds, 'ece', {assigned})⟩." if assigned else ""


def add_keyword_hint(problem: InputError, settings: Mapping[str, Any], keywords: Sequence[str]) -> InputError:
    """Return the error of an unknown setting with the remedy that a keyword of the function may have been meant.

    The error is unchanged if no keyword is similar, or if its own remedy is a better one: a similar setting.
    """
    unknown = next((name for name in settings if problem.code == "TO202" and repr(name) in problem.problem), None)
    if unknown is None:
        return problem
    has_no_similar_setting = problem.fix.startswith(("Known", "It has no"))
    is_synonym_of_keyword = bool(resolve_synonym(unknown, keywords))
    hint = (
        suggest_setting(unknown, settings[unknown], keywords) if has_no_similar_setting or is_synonym_of_keyword else ""
    )
    return InputError(problem.code, problem.problem, problem.got, hint) if hint else problem


def too_many_arguments_error(
    name: str, positional_names: Sequence[str], n_args: int, fix: str = "Settings are given by name."
) -> InputError:
    """Return the error of more positional arguments than a function takes."""
    noun = "argument" if len(positional_names) == 1 else "arguments"
    limit = (
        f"at most {len(positional_names)} positional {noun}: {', '.join(positional_names)}"
        if positional_names
        else "no positional arguments"
    )
    return InputError("TO202", f"{name} takes {limit}.", f"{n_args} {'argument' if n_args == 1 else 'arguments'}", fix)
