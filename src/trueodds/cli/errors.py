"""Errors of the command line: convert exceptions and click's usage errors to errors with codes, and print them."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence

import click

from trueodds.cli import output
from trueodds.cli.function_command import OPTION_OF_SETTING
from trueodds.cli.messages import spell_error
from trueodds.core.errors import InputError, install_command
from trueodds.core.suggestions import name_of_phrase, normalize_name, resolve_synonym, translate_setting

EXIT_INVALID_INPUT = 2  # exit code of invalid input or usage
ARGUMENTS_KEY = "trueodds.arguments"  # key of the arguments of a command in the `meta` of click's context
# What other tools and the Python functions call an option.
_SYNONYMS_OF_OPTION = {
    "--estimator": ("metric", "measure", "score", "scorer", "error"),
    "--measure": ("estimator", "metric", "score", "scorer", "error"),
    "--statistic": ("estimator", "metric", "measure", "score", "scorer", "error"),
    "--method": ("calibrator", "recalibrator", "calibration"),
    "--diagram": ("plot", "figure", "chart"),
    "--label": ("target", "truth", "outcome", "y", "y_true"),
    "--probs": ("prob", "probabilities", "probability", "predictions", "p", "y_prob"),
    "--out": ("output", "o"),
    "--seed": ("rng", "random_state", "random_seed"),
    "--weight": ("weights", "sample_weight"),
    "--group": ("groups", "by"),
    "--fail-on": ("gate", "fail_if", "threshold"),
}
# The value of --out, the only option that a command requires, in a remedy.
_EXAMPLE_OUTPUTS = {
    "apply": "recalibrated.csv",
    "draw": "diagram.svg",
    "fit": "cal.json",
    "merge": "sum.tally.json",
    "tally": "rows.tally.json",
}
# Options of records of answers that `apply` does not have, and the remedies.
_UNUSED_RECORD_OPTIONS = {
    "--samples": "First write the answers as a file of predictions, then apply the calibrator to it: trueodds answers"
    " FILE … --out F.",
    **dict.fromkeys(("--answer", "--choices", "--question", "--correct"), "Omit it: no outcome is read."),
}


def print_error(error: InputError) -> int:
    """Print an error as five labelled lines on stderr; return the exit code of invalid input."""
    error = spell_error(error)
    title = f"error {error.code}"
    output.print_text(title if os.environ.get("NO_COLOR") else output.colorize(title, "bad"), err=True, is_colored=True)
    for name, text in (("problem", error.problem), ("got", error.got), ("fix", error.fix)):
        output.print_text(f"{name}: {text or '–'}", err=True)
    output.print_text(f"more: trueodds explain {error.code}", err=True)
    return EXIT_INVALID_INPUT


def as_input_error(problem: BaseException) -> InputError:
    if isinstance(problem, InputError):
        return problem
    if isinstance(problem, OSError):
        file_prefix = f"{problem.filename}: " if problem.filename else ""
        return InputError(
            "TO602",
            "A file cannot be read or written.",
            f"{file_prefix}{problem.strerror or problem}",
            "Check the path, its permissions and the space left.",
        )
    if isinstance(problem, ImportError):
        return InputError("TO604", "A library is missing.", problem.name or str(problem), install_command("all"))
    if isinstance(problem, MemoryError):
        return InputError(
            "TO605", "The rows do not fit into memory.", str(problem) or "MemoryError", "Pass --mode tally."
        )
    return InputError(
        "TO699",
        "Internal error in trueodds; there is no result.",
        f"{type(problem).__name__}: {problem}",
        "Please report it with the command and this message.",
    )


def convert_usage_error(problem: click.UsageError) -> InputError:
    """Convert a usage error of click, such as a missing argument, to an error with a code and a remedy."""
    command = problem.ctx.command_path if problem.ctx else "trueodds"
    fix = f"See {command} --help."
    if isinstance(problem, click.NoSuchOption):
        return _convert_unknown_option(problem, command, fix)
    if isinstance(problem, click.MissingParameter):
        hint = problem.param.get_error_hint(problem.ctx) if problem.param and problem.ctx else "an argument"
        if isinstance(problem.param, click.Option):
            value = _EXAMPLE_OUTPUTS.get(problem.ctx.command.name or "", "F") if problem.ctx else "F"
            fix = f"Add {problem.param.opts[-1]} {value}."
        return InputError("TO601", "A required argument is missing.", f"no {hint}", fix)
    if isinstance(problem, click.BadParameter) and problem.param and problem.ctx:
        hint = problem.param.get_error_hint(problem.ctx)
        fix = _suggest_fraction(problem.param, problem.message) or fix
        return InputError("TO601", f"Invalid value of {hint}.", problem.message, fix)
    return InputError("TO601", "Invalid command line.", problem.format_message(), fix)


def _suggest_fraction(param: click.Parameter, message: str) -> str | None:
    """Return the remedy for a percentage such as 5 instead of the fraction 0.05, or None if it cannot be one.

    The message of click for a number outside the range of the option begins with the number.
    """
    number = re.match(r"[\d.]+", message)
    if not isinstance(param.type, click.FloatRange) or number is None:
        return None
    fraction = float(number[0]) / 100
    return f"It is a fraction: {param.opts[-1]} {fraction:g}." if 0.01 < fraction <= 1 else None


def _convert_unknown_option(problem: click.NoSuchOption, command: str, fix: str) -> InputError:
    """Convert the error of an unknown option of `command`; `fix` is the remedy if no more specific one is known.

    From the most to the least specific: what to do instead, the option of this meaning, the commands that have the
    option or one of its meaning, and options of similar spelling.
    """
    params = problem.ctx.command.params if problem.ctx else []
    takes_settings = any("--set" in param.opts for param in params)
    if takes_settings and (assignment := _setting_of_named_method(problem)):
        fix = f"It is a setting of {assignment[0]}: pass it as --set {assignment[1]}."
        return InputError("TO601", "Unknown option of this command.", problem.option_name, fix)
    synonyms, other_commands = _options_of_meaning(problem, params), _commands_with_option(problem)
    similar_options = list(problem.possibilities or ())  # click's own suggestions
    if command == "trueodds apply" and problem.option_name in _UNUSED_RECORD_OPTIONS:
        fix = _UNUSED_RECORD_OPTIONS[problem.option_name]
    elif synonyms:
        fix = f"Did you mean {' or '.join(synonyms)}?"
    elif other_commands:
        fix = f"Omit it, or use {other_commands}."
    elif similar_options:
        fix = f"Did you mean {' or '.join(similar_options)}?"
    # A setting without an option of its own is passed by --set, which only commands of methods have.
    may_be_setting = not synonyms and (not other_commands or problem.option_name in OPTION_OF_SETTING.values())
    if may_be_setting and takes_settings:
        name = problem.option_name.lstrip("-").replace("-", "_")
        fix += f" Pass a setting of a method as --set {name}=VALUE."
    return InputError("TO601", "Unknown option of this command.", problem.option_name, fix)


def _setting_of_named_method(problem: click.NoSuchOption) -> tuple[str, str] | None:
    """Return the method on the command line that has the unknown option as a setting, and its assignment; else None."""
    from trueodds.calibrators import CALIBRATORS
    from trueodds.diagrams import DIAGRAMS
    from trueodds.estimators import ESTIMATORS
    from trueodds.hypotests import TESTS

    setting = problem.option_name.lstrip("-").replace("-", "_")
    for argument in _arguments(problem):
        method = argument.partition("=")[2] if argument.startswith("--") else argument
        for registry in (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS):
            if registry.is_setting_of(method, setting):
                return method, f"{setting}={next(iter(_given_values(problem)), 'VALUE')}"
    return None


def _arguments(problem: click.NoSuchOption) -> Sequence[str]:
    """Return the arguments of the command."""
    return problem.ctx.meta.get(ARGUMENTS_KEY, []) if problem.ctx else []


def _given_values(problem: click.NoSuchOption) -> list[str]:
    """Return what may be the value of the unknown option: after its equals sign, and the argument that follows it."""
    arguments = _arguments(problem)
    following = [after for arg, after in itertools.pairwise(arguments) if arg == problem.option_name]
    return [arg.partition("=")[2] for arg in arguments if arg.startswith(f"{problem.option_name}=")] + following


def _options_of_meaning(problem: click.NoSuchOption, params: Sequence[click.Parameter]) -> list[str]:
    """Return those of the options that have the meaning of the unknown one, with its value if that has another name."""
    option_of_name = {
        opt.lstrip("-").replace("-", "_"): opt for param in params for opt in param.opts if opt.startswith("--")
    }
    for value in (*_given_values(problem), True):
        if setting_and_value := translate_setting(problem.option_name, value, option_of_name):
            return [f"⟨{setting_and_value}⟩"]
    word = normalize_name(problem.option_name)
    synonyms = [
        option
        for option, synonym_words in _SYNONYMS_OF_OPTION.items()
        if word in map(normalize_name, synonym_words) and option in option_of_name.values()
    ]
    for phrase in resolve_synonym(problem.option_name, option_of_name):
        name = name_of_phrase(phrase)
        synonyms.append(option_of_name[name] + phrase.removeprefix(name))
    return list(dict.fromkeys(synonyms))


def _commands_with_option(problem: click.NoSuchOption) -> str:
    """Return the other commands that have an unknown option, or the option of its meaning and the commands with it."""
    root = problem.ctx.find_root().command if problem.ctx else None
    commands = root.commands if isinstance(root, click.Group) else {}
    names = [
        name for name, command in commands.items() if any(problem.option_name in param.opts for param in command.params)
    ]
    if names:
        return " or ".join(names)
    commands_of_options: dict[str, list[str]] = {}
    for name, command in commands.items():
        if options := _options_of_meaning(problem, command.params):
            commands_of_options.setdefault(" or ".join(options), []).append(name)
    return " or ".join(f"{options} of {' or '.join(names)}" for options, names in commands_of_options.items())
