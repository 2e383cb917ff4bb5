"""trueodds explain: print what the code of an error or a note means, and what to do."""

from __future__ import annotations

import textwrap

import click

from trueodds.cli import output
from trueodds.core.codes import Code, find_near_codes, load_codes, normalize_code, plain_text
from trueodds.core.errors import InputError

_INDENT = "  "


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
    """Format the meaning of a code and the remedy as wrapped text."""
    lines = [f"{code.name} ({code.kind})"]
    for paragraph in (plain_text(code.meaning), f"What to do: {plain_text(code.remedy)}"):
        lines += textwrap.wrap(
            paragraph, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
        )
    return "\n".join(lines)


def _suggest_codes(text: str) -> str:
    """Return the remedy for an unknown code: similar codes, or how a code looks."""
    near_codes = find_near_codes(text)
    if near_codes:
        return f"Did you mean {' or '.join(near_codes)}?"
    return "A code is TO (an error) or TN (a note) and three digits, such as TO102."
