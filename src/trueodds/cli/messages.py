"""Spell the code in messages of the Python functions as options of the command line: `bins=10` becomes `--bins 10`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from trueodds.cli.function_command import OPTION_OF_SETTING
from trueodds.cli.options import COLUMN_OPTIONS, NAMES_OR_PATTERN_KEYWORDS
from trueodds.core.errors import InputError, Note, spell
from trueodds.core.printable import escape_marks, to_printable

_LIST_KEYWORDS = ("classes", *NAMES_OR_PATTERN_KEYWORDS)
# The option for each argument of a function, and the value that is shown if the message gives none.
_OPTION_OF_ARGUMENT: dict[str, tuple[str, str]] = {
    option.lstrip("-").replace("-", "_"): (option, placeholder)
    for option, placeholder in (
        *((option, settings["metavar"]) for option, settings in COLUMN_OPTIONS),
        *((option, "X") for option in OPTION_OF_SETTING.values()),
        ("--mode", "exact"),
        ("--lens", "NAME"),
        ("--alpha", "X"),
        ("--grid", "N"),
        ("--weight-kind", "frequency"),
        ("--dpi", "300"),
        ("--figsize", "5,4"),
        ("--horizon", "30d"),
        ("--unit", "day"),
        ("--time", "C"),
        ("--as-of", "TIME"),
        ("--center", "P"),
        ("--sampling", "random"),
        ("--probability", "C"),
        ("--stratum", "C"),
        ("--sensitivity", "90/100"),
        ("--specificity", "75/100"),
        ("--half-width", "X"),
    )
} | {"logits": ("--logits", "'p_*'"), "sum_tolerance": ("--sum-tolerance", "0.02"), "rng": ("--seed", "0")}
# Settings of single methods, which are passed by --set.
_DIAGRAM_SETTINGS = ("style", "bars", "simultaneous")
_METHOD_SETTINGS = (*_DIAGRAM_SETTINGS, "min_count", "folds", "share", "simulations", "distortion", "direction")
_METHOD_OPTIONS = {"measure": "--estimator", "test": "--test", "fit": "--method", "draw": "--diagram"}
_ARGUMENT_PATTERN = re.compile(r"(\w+)(?:=(.*))?", re.DOTALL)
_METHOD_CALL_PATTERN = re.compile(r"to\.(measure|test|fit|draw)\(preds, '(\w+)'((?:, \w+=(?:'[^']*'|…))*)\)")
_SHELL_WORD_PATTERN = re.compile(r"[\w.:%+-]+")  # what a shell takes without quotes
# Code that is no argument, and its counterpart on the command line.
_COUNTERPARTS = {
    "use Predictions.from_logits, or read(…, logits=True)": "pass --logits 'p_*'",
    "Predictions.from_logits": "--logits 'p_*'",
    "Predictions.from_logits(Y[:, j], Z[:, j])": "--label y_A --logits z_A",
    "Predictions(Y[:, j], P[:, j])": "--label y_A --probs p_A",
    "Predictions.from_multilabel": "--multilabel 'y_*'",
    "Call from_multilabel(Y, P)": "Pass --multilabel 'y_*'",
    "Predictions.from_confidence(p, correct)": "--confidence C --correct C",
    "Call from_confidence(confidence, correct)": "Pass --confidence C --correct C",
    "y_true as (n, K) shares": "--votes 'v_*'",
    "y_true as (n, K) counts or shares": "--votes 'v_*'",
    "Fit it again and save it with .save(path)": "Fit it again: trueodds fit FILE --out F",
    "divide by 100": "say --percent",
    "read them by to.read_answers(…, abstained=…)": "name a column that says so by --abstained F",
    "Read logits with trueodds.read(…, logits=)": "Logits are read from columns, by --logits",
    "Use one row per cluster: preds[np.unique(preds.cluster, return_index=True)[1]]": (
        "Use a file with one row per cluster, and leave out --cluster and --question"
    ),
    "mode='exact' (--mode exact)": "--mode exact",
    "between=True": "--between",
    "method='HTS'": "--method HTS",
    "paired=True": "--paired",
    "paired=False": "--unpaired",
    "percent=True": "--percent",
    "cost=": "--cost",
    "allow_fewer=True": "--allow-fewer",
    "complete=True": "--complete",
    "monitor.reset('recalibrated')": "--reset recalibrated",
    "null='redraw'": "--set null=redraw",
    "y_true": "the label",
    "y_prob": "the probability",
    ".classes": "the calibrator's classes",
}


def spell_options(text: str) -> str:
    """Return a message or note with options instead of the arguments that are marked in it.

    >>> from trueodds.core.errors import Message
    >>> spell_options(Message("Pass ⟨bins=[0, 0.5, 1]⟩, ⟨simultaneous=True⟩ or ⟨cluster=⟩."))
    "Pass --bins '[0, 0.5, 1]', --set simultaneous=true or --cluster C."
    """
    return spell(text, _spell_code)


def note_line(note: Note) -> str:
    """Return a note as one printable line with options instead of arguments."""
    return to_printable(f"[{note.code}] {spell_options(note.text)}")


def spell_notes(report: Any) -> Any:
    """Return a report whose notes name options, for the terminal and the page; its JSON keeps the arguments.

    Settings of a diagram are followed by the command that has them.
    """
    if isinstance(report, Mapping):
        return {
            name: [{**note, "text": spell(note["text"], _spell_code_in_audit)} for note in value or ()]
            if name == "notes"
            else spell_notes(value)
            for name, value in report.items()
        }
    if isinstance(report, (list, tuple)) and report and isinstance(report[0], Mapping):
        return [spell_notes(item) for item in report]
    return report


def _spell_code_in_audit(code: str) -> str:
    is_of_diagram = code.partition("=")[0] in _DIAGRAM_SETTINGS
    return f"{_spell_code(code)} to trueodds draw" if is_of_diagram else _spell_code(code)


def spell_error(error: InputError) -> InputError:
    problem, got, fix = (spell_options(text) for text in (error.problem, error.got, error.fix))
    option = got.partition(" ")[0]
    # Where a column is missing, the remedy lists those that exist.
    has_other_remedy = option in fix or "pass --" in fix or "invisible" in fix
    if error.code.startswith("TO30") and got != error.got and not has_other_remedy:
        selected = "one or more" if option.lstrip("-") in (*_LIST_KEYWORDS, "group") else "one"
        fix += f" Select {selected if fix.startswith('The ') else 'it'} with {option}."
    return InputError(error.code, problem, got, fix)


def _spell_code(code: str) -> str:
    if code in _COUNTERPARTS:
        return _COUNTERPARTS[code]
    if call := _METHOD_CALL_PATTERN.fullmatch(code):
        settings = "".join(f" {_spell_code(setting)}" for setting in call[3].split(", ")[1:])
        return f"trueodds {call[1]} FILE {_METHOD_OPTIONS[call[1]]} {call[2]}{settings}"
    if (argument := _ARGUMENT_PATTERN.fullmatch(code)) is None:
        return code
    name, value = argument.groups()
    if name in _METHOD_SETTINGS:
        return code if value is None else f"--set {name}={_spell_value(name, value) or 'X'}"
    if name not in _OPTION_OF_ARGUMENT:
        return code
    option, placeholder = _OPTION_OF_ARGUMENT[name]
    if value is None:
        return option
    if value == "None" and name in ("label", *_LIST_KEYWORDS):
        return f"no {option}"
    if name == "group" and value.startswith("["):
        return " ".join(f"--group {_quote(column)}" for column in ast.literal_eval(value))
    is_true = name == "logits" and value == "True"
    return f"{option} {placeholder if is_true else _spell_value(name, value) or placeholder}"


def _spell_value(name: str, value: str) -> str:
    """Return the Python code of a value as the command line takes it."""
    if value == "":
        return ""
    if value.startswith("["):
        items = re.findall(r"'[^']*'|-?\d[\d.e+-]*", value)
        return ",".join(item.strip("'") for item in items) if name in _LIST_KEYWORDS else f"'{value}'"
    if value.startswith("("):
        return value.strip("()").replace(" ", "")
    if value[:1] in "'\"":
        return _quote(value[1:-1])
    return value.lower() if value in ("True", "False", "None") else value


def _quote(text: str) -> str:
    """Return a value in quotes, unless a shell takes it as it is; escaped marks need a string with escapes."""
    text = escape_marks(text)
    if r"\u27e" in text:
        return f"$'{text}'"
    return text if _SHELL_WORD_PATTERN.fullmatch(text) else f"'{text}'"
