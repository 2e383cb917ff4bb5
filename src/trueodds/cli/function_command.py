"""A command made from the signature and docstring of its function: the options, and parsing the texts of their values.

A command declares only what the command line alone has. The names, types, defaults, values and texts of the other
options are those of the function that it calls (`FunctionCommand`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import click

from trueodds.cli.options import COLUMN_KEYWORDS, FRACTION, SEED_SETTINGS
from trueodds.core.docstrings import parameter_entries, resolve_references
from trueodds.core.errors import InputError

PACKAGE = Path(__file__).parents[1]


def _spell(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


# Settings of methods, whose texts are parsed by `parse_value`; each family of methods has some of them as options.
SETTING_TEXTS = {
    "bins": "Number of bins, sqrt, or edges such as [0,0.5,1].",
    "partition": "How rows are binned: see trueodds list partitions.",
    "min_size": "Minimum number of rows in a leaf of the median-variance tree.",
    "closed": "Edge that a bin includes: right (default) or left.",
    "range": "1/K: bins on [1/K, 1] instead of [0, 1].",
    "distance": "Distance between predicted and observed: see trueodds list distances.",
    "order": "Order of the mean over bins; inf is the maximum.",
    "min_prob": "Smallest probability inside a logarithm.",
    "between": "Interpolation of isotonic between its knots: linear or step.",
    "aggregate": "How several views are combined: mean, max, sum, prevalence, weight.",
    "level": "Confidence level of the error bars.",
    "resamples": "Number of bootstrap resamples or null draws.",
    "redraw": "What a test redraws: labels, both (rows and labels), or all (every labeling).",
    "statistic": "The estimator that is the test statistic.",
}
_BIN_SETTINGS = ("bins", "partition", "min_size", "closed", "range")
_ERROR_SETTINGS = (*_BIN_SETTINGS, "distance", "order", "min_prob")
SETTINGS_OF_FAMILY = {
    "estimators": _ERROR_SETTINGS,
    "tests": ("statistic", *_ERROR_SETTINGS, "aggregate", "resamples", "redraw"),
    "diagrams": (*_BIN_SETTINGS, "level", "resamples"),
    "calibrators": ("bins", "partition", "min_prob", "between"),
}
# Parameters of the functions that call a method, whose texts are parsed like those of its settings.
TEXT_PARAMETERS = ("interval", "level", "resamples", "resample", "aggregate", "region", "margin")
OPTION_OF_SETTING = {name: _spell(name) for name in (*SETTING_TEXTS, *TEXT_PARAMETERS)}
# What the command line says of a parameter, instead of what follows from the signature and the docstring.
_OPTION_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "rng": {"option": "--seed", "metavar": None, **SEED_SETTINGS},
    "alpha": {"type": FRACTION},
    "level": {"type": FRACTION},
    "power": {"type": FRACTION},
    "min_effect": {"type": click.FloatRange(min=0)},
    "crossings": {
        "type": click.IntRange(min=1),
        "default": 1,
        "metavar": "[N]",
        "help": "Also analyze the combinations of every two group columns, or of up to N columns.",
    },
    "paired": {
        "option": "--paired/--unpaired",
        "help": "Whether to pair rows: by --question or --row-id, else in their order. [default: paired if the ids or"
        " the outcomes are equal]",
    },
    "lenses": {"option": "--lens", "multiple": True},
    "by": {"metavar": "C"},
    "resume": {"metavar": "F"},
    "figsize": {"metavar": "W,H", "type": str},
    "dpi": {"metavar": "N", "type": str, "help": "Pixels per inch of a .png file. [default: 200]"},
}
# Parameters that have no option: the command line passes them itself, or has an option for their file.
_WITHOUT_OPTION = ("progress", "cost", "actions")
_LIST_SETTINGS = ("candidates",)  # lists of names, which may also be separated by commas
# Arguments of the Python functions that have an option of their own, and so are refused in --set.
_OPTIONS_REFUSED_IN_SET = {
    "rng": "--seed",
    "seed": "--seed",
    "lens": "--lens",
    "mode": "--mode",
    "weight_kind": "--weight-kind",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with a default, as the source of a public function declares and describes it."""

    name: str
    annotation: str
    default: Any
    head: str  # its type in the docstring
    text: str  # its description

    @classmethod
    def from_source(cls, arg: ast.arg, default: ast.expr, head: str | None, text: str) -> Parameter:
        """Make a parameter; a default that the signature takes from a constant is that of the docstring."""
        parameter = cls(arg.arg, ast.unparse(arg.annotation or default), None, head or "", " ".join(text.split()))
        try:
            return replace(parameter, default=ast.literal_eval(default))
        except ValueError:
            return replace(parameter, default=parameter.documented_default)

    @property
    def documented_default(self) -> str | None:
        found = re.search('default="?(.*?)"?(?:,|$)', self.head)
        return found and found[1]

    @property
    def choices(self) -> list[str]:
        """The values that the docstring lists, as in `{"pairs", "rest"}`."""
        found = re.match("{(.*?)}(?: or (None))?", self.head)
        return [] if found is None else re.findall(r"[\w-]+", found[1]) + ["none"] * (found[2] is not None)

    def option(self, *, is_text: bool, names: Container[str]) -> click.Option:
        """Return the option of the parameter; with `is_text` its value is a text for `parse_value`.

        `names` are those of the parameters that are options.
        """
        settings: dict[str, Any] = {"help": self._help(is_text=is_text, names=names)}
        if is_text:
            settings["metavar"] = "X"
        else:
            settings |= self._type() | {"default": self.default, "show_default": bool(self.default)}
            settings |= _OPTION_SETTINGS.get(self.name, {})
        return click.Option([settings.pop("option", _spell(self.name)), self.name], **settings)

    def _type(self) -> dict[str, Any]:
        types = self.annotation.split(" | ")
        if self.choices:
            return {"type": click.Choice(self.choices)}
        if self.annotation == "bool" and self.default is False:
            return {"is_flag": True}
        if "int" in types:
            return {"type": click.IntRange(min=1), "metavar": "N"}
        return {"type": float, "metavar": "X"} if "float" in types else {}

    def _help(self, *, is_text: bool, names: Container[str]) -> str:
        """Return the first sentence of the description, and the one on the default, as the command line says them.

        Quotes are removed, parameters are named by their options, and a text option lists its allowed values.
        """
        first, *others = re.split(r"(?<=\.) ", self.text)
        first = re.sub(r", as in `\w+`", "", first)
        if is_text and self.choices:
            first = f"{first.removesuffix('.')}: {', '.join(self.choices)}."
        sentences = [first, *(other for other in others if re.match("By default|The defaults? (is|are) ", other))]
        if len(sentences) == 1 and (is_text or self.default is None) and self.documented_default:
            sentences.append(f"[default: {self.documented_default}]")
        text = re.sub(r'``"?(.*?)"?``', r"\1", " ".join(sentences))
        return re.sub("`(.*?)`", lambda name: _spell(name[1]) if name[1] in names else name[1], text)


def read_parameters(path: str) -> dict[str, Parameter]:
    """Return the parameters with a default of the public function or class of a module, named like its file.

    The source is parsed and not imported, because `--help` needs no NumPy, and has its texts under `python -OO`, too.
    """
    name = Path(path).stem
    args = _arguments_of(_find_definition(path, name))
    entries = parameter_entries(_complete_docstring(path, name))
    positional = [*args.posonlyargs, *args.args]
    defaults = dict(zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True))
    defaults |= {arg: default for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default}
    return {
        arg.arg: Parameter.from_source(arg, default, *entries[arg.arg])
        for arg, default in defaults.items()
        if arg not in args.posonlyargs
    }


@cache
def _parse_module(path: str) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def _find_definition(path: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Return the definition of a function in a module, which comes after those of its overloads, or of a class."""
    body = _parse_module(path).body
    definitions: list[ast.FunctionDef | ast.ClassDef] = [
        node for node in body if isinstance(node, ast.ClassDef) and node.name == name.title()
    ]
    definitions += [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    return definitions[-1]


def _arguments_of(definition: ast.FunctionDef | ast.ClassDef) -> ast.arguments:
    """Return the arguments of a function, or those that create an object of a class."""
    if isinstance(definition, ast.FunctionDef):
        return definition.args
    return next(node.args for node in definition.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")


def _complete_docstring(path: str, name: str) -> str:
    """Return the docstring of a function, with the entries that it takes from functions that its module imports."""
    path_of_name = {
        alias.name: f"{node.module.removeprefix('trueodds.').replace('.', '/')}.py"
        for node in _parse_module(path).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    docstring = ast.get_docstring(_find_definition(path, name)) or ""
    return resolve_references(docstring, lambda source: _complete_docstring(path_of_name.get(source, path), source))


class FunctionCommand(click.Command):
    """A command that calls a public function, with an option for each parameter that it does not declare itself.

    `function` is the path, in the package, of the module of the function or of the class that the command creates. The
    settings of a `family` of methods are options too, and --set passes the others. Parameters in `without` have no
    option. Declared options in `first` are listed before the columns.
    """

    def __init__(
        self,
        *args: Any,
        function: str,
        family: str | None = None,
        without: Sequence[str] = (),
        first: Sequence[str] = (),
        **attrs: Any,
    ) -> None:
        self.function, self._family, self._without = function, family, (*without, *_WITHOUT_OPTION)
        self._first = ("files", *first)
        super().__init__(*args, **attrs)

    @property
    def params(self) -> list[click.Parameter]:
        """FILE and the columns, the parameters of the function, settings, and what only the command line has."""
        return self._all_params

    @params.setter
    def params(self, declared: list[click.Parameter]) -> None:
        self._declared = declared

    @cached_property
    def _all_params(self) -> list[click.Parameter]:
        columns = [param for param in self._declared if param.name in self._first]
        columns += [param for param in self._declared if param.name in COLUMN_KEYWORDS]
        settings: list[click.Parameter] = []
        if self._family is not None:
            settings = [
                click.Option([OPTION_OF_SETTING[name]], metavar="X", help=SETTING_TEXTS[name])
                for name in SETTINGS_OF_FAMILY[self._family]
                if name not in self._parameters
            ]
            set_help = f"Any other setting of one of the {self._family}."
            settings.append(click.Option(["--set", "assignments"], metavar="NAME=VALUE", multiple=True, help=set_help))
        passed = [
            parameter.option(is_text=name in self.text_parameters, names=self._parameters)
            for name, parameter in self._parameters.items()
        ]
        return [*columns, *passed, *settings, *(param for param in self._declared if param not in columns)]

    @cached_property
    def _parameters(self) -> dict[str, Parameter]:
        """The parameters of the function that become options, by name."""
        excluded = {*self._without, *(param.name for param in self._declared)}
        return {name: parameter for name, parameter in read_parameters(self.function).items() if name not in excluded}

    @property
    def text_parameters(self) -> list[str]:
        """The parameters of the function whose values are texts, like those of the settings of its methods."""
        return [name for name in self._parameters if self._family is not None and name in TEXT_PARAMETERS]


def pop_settings(params: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings of the method from the parameters of the command, and return their values by name."""
    parsed = {}
    for name in OPTION_OF_SETTING:
        if isinstance(params.get(name), bool):  # a flag of this command, such as --between of groups
            continue
        text = params.pop(name, None)
        if text is not None:
            parsed[name] = parse_value(text)
    for assignment in params.pop("assignments", ()):
        name, equals, text = assignment.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(
                "TO601", "--set takes NAME=VALUE.", repr(assignment), "For instance --set style=deviation."
            )
        if name in _OPTIONS_REFUSED_IN_SET:
            raise InputError(
                "TO603",
                "--set is only for settings that have no option.",
                f"--set {assignment}",
                f"Use {_OPTIONS_REFUSED_IN_SET[name]}.",
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
