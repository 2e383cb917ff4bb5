"""Options for the settings of estimators, tests, diagrams and calibrators, and parsing the texts of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from trueodds.cli.options import Command, add_options
from trueodds.core.errors import InputError

SETTING_OPTIONS = {
    "--bins": "Number of bins, sqrt, or edges such as [0,0.5,1].",
    "--partition": "How rows are binned: see trueodds list partitions.",
    "--min-size": "Minimum number of rows in a leaf of the median-variance tree.",
    "--closed": "Edge that a bin includes: right (default) or left.",
    "--range": "1/K: bins on [1/K, 1] instead of [0, 1].",
    "--distance": "Distance between predicted and observed: see trueodds list distances.",
    "--order": "Order of the mean over bins; inf is the maximum.",
    "--min-prob": "Smallest probability inside a logarithm.",
    "--between": "Interpolation of isotonic between its knots: linear or step.",
    "--aggregate": "How several views are combined: mean, max, sum, prevalence, weight.",
    "--region": "Only rows with predictions in a region: 'confidence > 0.9 and class:cat >= 0.1'.",
    "--interval": "Interval method: auto, percentile, basic, bca, sun, debiased or none.",
    "--level": "Confidence level of the interval or of the error bars.",
    "--resamples": "Number of bootstrap resamples or null draws.",
    "--resample": "What the bootstrap resamples: auto, rows, cells.",
    "--redraw": "What a test simulates: labels, or both rows and labels.",
    "--statistic": "The estimator that is the test statistic.",
    "--margin": "Equivalence margin: decide within, beyond or undecided from the interval.",
}
_BIN_OPTIONS = ("--bins", "--partition", "--min-size", "--closed", "--range")
_ERROR_OPTIONS = (*_BIN_OPTIONS, "--distance", "--order", "--min-prob", "--aggregate", "--region")
OPTIONS_OF_FAMILY = {
    "estimators": (*_ERROR_OPTIONS, "--interval", "--level", "--resamples", "--resample"),
    "tests": ("--statistic", *_ERROR_OPTIONS, "--resamples", "--redraw", "--margin"),
    "diagrams": (*_BIN_OPTIONS, "--level", "--resamples"),
    "calibrators": ("--bins", "--partition", "--min-prob", "--between"),
}
# Settings of `measure` itself, beside those of the estimator.
INTERVAL_SETTINGS = ("interval", "level", "resamples", "resample", "aggregate", "region")
_LIST_SETTINGS = ("candidates",)  # lists of names, which may also be separated by commas
# Arguments of the Python functions that have an option of their own, and so are refused in --set.
_OPTION_OF_SETTING = {
    "rng": "--seed",
    "seed": "--seed",
    "lens": "--lens",
    "mode": "--mode",
    "weight_kind": "--weight-kind",
}


def settings_options(family: str, omitted: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of one family of methods, and --set for its other settings.

    `omitted` are options of the family that the command does not use.
    """

    options: list[tuple[str, dict[str, Any]]] = [
        (option, {"metavar": "X", "help": SETTING_OPTIONS[option]})
        for option in OPTIONS_OF_FAMILY[family]
        if option not in omitted
    ]
    set_help = f"Any other setting of one of the {family}."
    set_option = click.option("--set", "assignments", metavar="NAME=VALUE", multiple=True, help=set_help)
    return lambda command: add_options(options)(set_option(command))


def pop_settings(params: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings of the method from the parameters of the command, and return their values by name."""
    parsed = {}
    for option in SETTING_OPTIONS:
        name = option.lstrip("-").replace("-", "_")
        text = params.pop(name, None)
        if text is not None:
            parsed[name] = parse_value(text)
    for assignment in params.pop("assignments", ()):
        name, equals, text = assignment.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(
                "TO601", "--set takes NAME=VALUE.", repr(assignment), "For instance --set style=deviation."
            )
        if name in _OPTION_OF_SETTING:
            raise InputError(
                "TO603",
                "--set is only for settings that have no option.",
                f"--set {assignment}",
                f"Use {_OPTION_OF_SETTING[name]}.",
            )
        if name in parsed:
            raise InputError("TO603", "A setting is given twice.", name, "Omit one of them.")
        value = parse_value(text)
        is_list_of_names = name in _LIST_SETTINGS and isinstance(value, str)
        parsed[name] = [word.strip() for word in value.split(",")] if is_list_of_names else value
    return parsed


def parse_value(text: str) -> Any:
    """Convert the text of a setting to a number, a boolean, a list, None, or a word.

    >>> [parse_value(text) for text in ("15", "0.5", "inf", "none", "[0, 0.5, 1]", "equal-mass")]
    [15, 0.5, inf, None, [0, 0.5, 1], 'equal-mass']
    """
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    if text[:1] in "[{":
        import json

        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                "TO601", "This list cannot be read.", text[:80], "Write it as JSON: [0, 0.5, 1]."
            ) from None
    return text
