"""Rewrite messages of the Python functions for the command line: `bins=10` becomes `--bins 10`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trueodds.cli.options import COLUMN_OPTIONS
from trueodds.cli.settings import SETTING_OPTIONS
from trueodds.core.errors import InputError

_LIST_KEYWORDS = ("classes", "probs", "logits", "votes", "multilabel", "group", "question", "abstained")
# The option for each keyword of a function, and the value that is shown if the message gives none.
_OPTION_OF_KEYWORD: dict[str, tuple[str, str]] = {
    option.lstrip("-").replace("-", "_"): (option, placeholder)
    for option, placeholder in (
        *((option, settings["metavar"]) for option, settings in COLUMN_OPTIONS),
        *((option, "X") for option in SETTING_OPTIONS),
        *(
            ("--mode", "exact"),
            ("--lens", "NAME"),
            ("--alpha", "X"),
            ("--grid", "N"),
            ("--weight-kind", "frequency"),
            ("--dpi", "300"),
        ),
    )
} | {"logits": ("--logits", "'p_*'"), "sum_tolerance": ("--sum-tolerance", "0.02"), "rng": ("--seed", "0")}
_METHOD_OPTIONS = {"measure": "--estimator", "test": "--test", "fit": "--method", "draw": "--diagram"}
# Settings of single methods, which are passed by --set.
_METHOD_SETTINGS = (
    "style",
    "bars",
    "simultaneous",
    "min_count",
    "folds",
    "share",
    "simulations",
    "distortion",
    "direction",
)
_OPTION_OF_KEYWORD |= {name: (f"--set {name}=", "X") for name in _METHOD_SETTINGS}
# A keyword with a quoted, listed, constant or no value. A bare word after = is part of a label such as region=north.
_KEYWORD_PATTERN = re.compile(
    rf"(?<![\w./=-])(?<!--set )(?P<name>{'|'.join(_OPTION_OF_KEYWORD)})="
    r"(?P<value>'[^']*'|\[[^\]]*\]"
    r"|(?:True|False|None|[+-]?(?:inf|\d+(?:\.\d+)?(?:e[+-]?\d+)?))(?![\w/-]|\.\w)|(?=[\s.,;:)]|$))"
)
# A keyword without =, recognized by its underscore. min_count stays: it has no option of its own to be named by.
_UNDERSCORED_KEYWORD_PATTERN = re.compile(
    rf"(?<![\w./=-])({'|'.join(name for name in _OPTION_OF_KEYWORD if '_' in name and name != 'min_count')})\b"
)
# The names from the data that a remedy lists.
_LISTED_NAMES_PATTERN = re.compile(
    r"(?:Known:|The columns are|The fields are|The only column is|Did you mean) (.+?)(?:\?|\.(?= |$))"
)
_LIST_ITEM_PATTERN = re.compile(r"'([^']*)'|(?<![\w.])(-?\d+)")  # a quoted name or a number of a list
_SHELL_WORD_PATTERN = re.compile(r"[\w.:%+-]+")  # what a shell takes without quotes
# Constructors, calls and attributes of the library, and their counterparts on the command line; applied in this order.
_PHRASE_REPLACEMENTS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r", or read\(…, logits=True\)", ""),
        (r"\b(?:[Cc]all |[Uu]se )?(?:Predictions\.)?from_confidence(?:\([^)]*\))?", "--confidence C --correct C"),
        (r"\b(?:[Cc]all |[Uu]se )?(?:Predictions\.)?from_multilabel(?:\([^)]*\))?", "--multilabel 'y_*'"),
        (r"Predictions\.from_logits\(Y\[:, j\], Z\[:, j\]\)", "--label y_A --logits z_A"),
        (r"\buse Predictions\.from_logits", "pass --logits 'p_*'"),
        (r"\b(?:[Cc]all |[Uu]se )?(?:Predictions\.)?from_logits(?:\([^)]*\))?", "--logits 'p_*'"),
        (r"y_true as \(n, K\)(?: shares)?", "--votes 'v_*'"),
        (r"Uniform\(15\); words are understood by trueodds\.measure\(…, (partition='[\w-]+')\)", r"\1"),
        (r"Predictions\(Y\[:, j\], P\[:, j\]\)", "--label y_A --probs p_A"),
        (r"Fit it again and save it with \.save\(path\)", "Fit it again: trueodds fit FILE --out F"),
        (r"If 70 means 70 %, divide by 100", "If 70 means 70 %, say --percent"),
        (
            r"read them by to\.read_answers\(…, abstained=…\)",
            "name a column that says so by --abstained F",
        ),
        (r"Name each by itself: group=\[(.+)\]", lambda match: f"Repeat --group: {_group_options(match[1])}"),
        (
            r"to\.(measure|test|fit|draw)\(preds, '(\w+)'((?:, \w+='[^']*')*)\)",
            lambda match: (
                f"trueodds {match[1]} FILE {_METHOD_OPTIONS[match[1]]} {match[2]}{match[3].replace(', ', ' ')}"
            ),
        ),
        (r"\bfigsize=\(5, 4\)", "--figsize 5,4"),
        (r"\bpercent=True\b", "--percent"),
        (
            r"Use one row per cluster: preds\[np\..*\]\.",
            "Use a file with one row per cluster, and leave out --cluster and --question.",
        ),
        (r"\bnull='redraw'", "--set null=redraw"),
        (r"\bpaired=True\b", "--paired"),
        (r"\bpaired=False\b", "--unpaired"),
        (r"in the order of \.classes", "in the order of the calibrator's classes"),
    )
)
_REPEATED_OPTION_PATTERN = re.compile(r"(--[\w-]+ \w+) \(\1\)")  # mode='exact' (--mode exact), once replaced


def restate_keywords(text: str, quoted_texts: Iterable[str] = ()) -> str:
    """Replace keyword arguments in a remedy or note by options; `quoted_texts` are from the data and stay unchanged.

    >>> restate_keywords("If these are logits, use Predictions.from_logits, or read(…, logits=True).")
    "If these are logits, pass --logits 'p_*'."
    >>> restate_keywords("For instance level=0.9, bins=[0, 0.5, 1], simultaneous=True or cluster=.")
    "For instance --level 0.9, --bins '[0, 0.5, 1]', --set simultaneous=true or --cluster C."
    >>> restate_keywords("None for order=1; say order=2.", ["order=1"])
    'None for order=1; say --order 2.'
    """
    if literals := sorted({word for word in quoted_texts if word}, key=len, reverse=True):
        # Splitting by a group yields the text between literals at even positions, and the literals at odd ones.
        pieces = re.split(rf"(?<!\w)({'|'.join(map(re.escape, literals))})(?!\w)", text)
        return "".join(piece if i % 2 else restate_keywords(piece) for i, piece in enumerate(pieces))
    for pattern, replacement in _PHRASE_REPLACEMENTS:
        text = pattern.sub(replacement, text)
    text = _KEYWORD_PATTERN.sub(_format_option, text)
    text = _replace_underscored_keywords(text)
    return _REPEATED_OPTION_PATTERN.sub(r"\1", text)


def _replace_underscored_keywords(text: str) -> str:
    """Replace keywords without a value, such as `min_prob`, by the names of their options."""
    return _UNDERSCORED_KEYWORD_PATTERN.sub(lambda match: _OPTION_OF_KEYWORD[match[1]][0], text)


def restate_error(error: InputError) -> InputError:
    """Return the same error with options in place of keywords; values quoted from data or paths are unchanged."""
    # The remedy for a missing column lists the columns that exist, which may be called label=1.
    is_missing_column = error.code.startswith("TO30")
    listed_names = _LISTED_NAMES_PATTERN.findall(error.fix) if is_missing_column else []
    problem, got, fix = error.problem, error.got, restate_keywords(error.fix, listed_names)
    if keyword := _KEYWORD_PATTERN.fullmatch(got):
        option = _OPTION_OF_KEYWORD[keyword["name"]][0]
        got = _format_option(keyword)
        has_other_remedy = "pass --" in fix or "invisible" in fix
        if is_missing_column and option not in fix and not has_other_remedy:
            selected = "one or more" if keyword["name"] in _LIST_KEYWORDS else "one"
            fix += f" Select {selected if fix.startswith('The ') else 'it'} with {option}."
    if not error.code.startswith("TO3"):  # errors of files, whose problem may begin with a name such as label=1.csv
        problem = _replace_underscored_keywords(_KEYWORD_PATTERN.sub(_format_quoted_option, problem))
    if error.code == "TO109":  # the arguments of the Python function are columns here
        problem, got = (
            text.replace("y_true", "the label").replace("y_prob", "the probability") for text in (problem, got)
        )
    return InputError(error.code, problem, got, fix)


def _format_quoted_option(match: re.Match[str]) -> str:
    """Return the option for a keyword with a quoted value; another value may be part of a file name."""
    return _format_option(match) if match["value"][:1] == "'" else match[0]


def _group_options(names: str) -> str:
    """Return --group once for each name of a list."""
    return " ".join(
        f"--group {name[1:-1] if _SHELL_WORD_PATTERN.fullmatch(name[1:-1]) else name}" for name in names.split(", ")
    )


def _format_option(match: re.Match[str]) -> str:
    """Return the option of the command line for a keyword argument in a message."""
    name, value = match["name"], match["value"]
    option, placeholder = _OPTION_OF_KEYWORD[name]
    if value == "None" and name in ("label", *_LIST_KEYWORDS):
        return f"no {option}"
    if value == "" or (name == "logits" and value == "True"):
        text = placeholder
    elif value.startswith("["):
        items = ("".join(quoted_or_number) for quoted_or_number in _LIST_ITEM_PATTERN.findall(value))
        text = ",".join(items) if name in _LIST_KEYWORDS else f"'{value}'"
    elif value.startswith("'"):
        text = value[1:-1] if _SHELL_WORD_PATTERN.fullmatch(value[1:-1]) else value
    else:
        text = value.lower() if value in ("True", "False", "None") else value
    return option + text if option.endswith("=") else f"{option} {text}"
