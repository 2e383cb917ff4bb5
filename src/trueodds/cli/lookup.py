"""trueodds list and explain: look up names of methods and the meaning of codes."""

from __future__ import annotations

import importlib
import inspect
import textwrap

import click

from trueodds.binning import PARTITION_NAMES
from trueodds.cli import output
from trueodds.cli.study import declared_studies, installed_studies
from trueodds.core.codes import Code, find_near_codes, load_codes, normalize_code, plain_text
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.core.suggestions import suggest_names
from trueodds.lenses import LENS_NAMES

_REGISTRY_OF_FAMILY = {
    "estimators": "trueodds.estimators:ESTIMATORS",
    "tests": "trueodds.hypotests:TESTS",
    "calibrators": "trueodds.calibrators:CALIBRATORS",
    "diagrams": "trueodds.diagrams:DIAGRAMS",
}
# Names, or examples of them, that are in no registry. Those of distances are repeated here because their module imports
# NumPy; a test checks that it accepts them.
_NAMES_OF_FAMILY = {
    "lenses": LENS_NAMES,
    "partitions": PARTITION_NAMES,
    "distances": ("tv", "l1", "l2", "sq-euclidean", "max", "kl", "lp:3"),
}
MAX_LINE_WIDTH = 100  # columns of a line on one method
_ALL_FAMILIES = (*_REGISTRY_OF_FAMILY, "studies", *_NAMES_OF_FAMILY)


@click.command("list", short_help="List the available names.")
@click.argument("family", required=False, metavar=f"[{'|'.join(_ALL_FAMILIES)}]")
def list_names(family: str | None) -> None:
    """List the names of estimators, tests, calibrators, diagrams, studies, lenses, partitions and distances."""
    if family is not None and family not in _ALL_FAMILIES:
        raise InputError("TO601", "Unknown kind of names.", repr(family), suggest_names(family, _ALL_FAMILIES))
    if family is not None:
        output.print_text("\n".join(_describe_names(family)))
        return
    for name in _ALL_FAMILIES:
        if name == "studies" and not declared_studies():
            continue  # their package is not installed, which only `trueodds list studies` reports
        line = f"{name:<12} {' '.join(names_of_family(name))}"
        width = output.terminal_width()
        output.print_text(line if width is None else output.wrap_lines(line, width, hanging=13))


def _describe_names(family: str) -> list[str]:
    """Return a line for each name of a family: the name, and the summary of a method's docstring."""
    names = names_of_family(family)
    if family not in _REGISTRY_OF_FAMILY:
        return list(names)
    registry, width = _registry(family), max(map(len, names))
    summaries = [inspect.cleandoc(registry.load(name).__doc__ or "").partition("\n\n")[0] for name in names]
    texts = [plain_text(" ".join(summary.split())) for summary in summaries]
    return [_shorten_line(f"{name:<{width}}  {text}") for name, text in zip(names, texts, strict=True)]


def _shorten_line(line: str) -> str:
    """Return a line of at most `MAX_LINE_WIDTH` columns, cut at a blank.

    >>> _shorten_line("ece  Expected calibration error"), len(_shorten_line("a long summary " * 9)) <= MAX_LINE_WIDTH
    ('ece  Expected calibration error', True)
    """
    if len(line) <= MAX_LINE_WIDTH:
        return line
    return line[: MAX_LINE_WIDTH - 1].rpartition(" ")[0].rstrip(",:;") + " …"


def names_of_family(family: str) -> tuple[str, ...]:
    """Return the names of a family, such as "estimators" or "lenses", without importing any method."""
    if family in _NAMES_OF_FAMILY:
        return _NAMES_OF_FAMILY[family]
    if family == "studies":
        return installed_studies().names()
    return _registry(family).names()


def _registry(family: str) -> Registry:
    module, _, table = _REGISTRY_OF_FAMILY[family].partition(":")
    registry: Registry = getattr(importlib.import_module(module), table)
    return registry


@click.command(short_help="Explain the code of an error or a note.")
@click.argument("codes", nargs=-1, required=True, metavar="CODE...")
def explain(codes: tuple[str, ...]) -> None:
    """Print what a code such as TO102 (an error) or TN105 (a note) means, and what to do."""
    known = load_codes()
    names = dict.fromkeys(map(normalize_code, codes))
    if explained := [format_code(known[name], output.text_width()) for name in names if name in known]:
        output.print_text("\n\n".join(explained))
    unknown = next((text for text in codes if normalize_code(text) not in known), None)
    if unknown is not None:
        raise InputError("TO601", "Unknown code.", repr(unknown), _suggest_codes(unknown))


def format_code(code: Code, width: int) -> str:
    lines = [f"{code.name} ({code.kind})"]
    for paragraph in (plain_text(code.meaning), f"What to do: {plain_text(code.remedy)}"):
        lines += textwrap.wrap(paragraph, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


def _suggest_codes(text: str) -> str:
    near_codes = find_near_codes(text)
    if near_codes:
        return f"Did you mean {' or '.join(near_codes)}?"
    return "A code is TO (an error) or TN (a note) and three digits, such as TO102."
