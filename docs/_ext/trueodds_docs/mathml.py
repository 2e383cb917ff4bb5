"""Formulas as MathML, which browsers show without a script or a request."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

DELIMITER = re.compile(r"\\([bB]igg?)[lrm]?(?![A-Za-z])\s*(\\[A-Za-z]+|\\.|\S)")
OPENING = {"(", "[", "\\{", r"\lVert", r"\lvert", r"\lfloor", r"\lceil", r"\langle"}
CLOSING = {")", "]", "\\}", r"\rVert", r"\rvert", r"\rfloor", r"\rceil", r"\rangle"}
BARS = {"|", r"\|", r"\vert", r"\Vert"}
# A subscript of an accented letter, which docutils would write below the letter unless the group has another element.
ACCENT = re.compile(r"(\\(?:bar|hat|tilde|widehat|widetilde|dot|vec)\s*(?:\{[^{}]*\}|\\[A-Za-z]+|\w))\s*(?=[_^])")
COMMANDS = {r"\dots": r"\ldots", r"\textstyle": "", "…": r"\ldots "}


def plain_tex(formula: str) -> str:
    r"""Return a formula in the commands that docutils knows: delimiters have a side, and accents a group.

    >>> plain_tex(r"\Big(\bar p_b, \dots\Big)")
    '\\Bigl({\\bar p{}}_b, \\ldots\\Bigr)'
    """
    is_open = False

    def with_side(match: re.Match[str]) -> str:
        nonlocal is_open
        size, delimiter = match[1], match[2]
        if delimiter in BARS:
            is_open = not is_open
            side = "l" if is_open else "r"
        elif delimiter in OPENING | CLOSING:
            side = "l" if delimiter in OPENING else "r"
        else:
            return delimiter
        return f"\\{size}{side}{delimiter}"

    formula = ACCENT.sub(r"{\1{}}", DELIMITER.sub(with_side, formula))
    for command, replacement in COMMANDS.items():
        ending = r"(?![A-Za-z])" if command.startswith("\\") else ""
        formula = re.sub(re.escape(command) + ending, replacement.replace("\\", r"\\"), formula)
    return formula.strip()


def formula_as_mathml(node: nodes.Element, is_block: bool) -> str:
    """Return the MathML of a formula; one that docutils cannot convert is reported and shown as it was written."""
    try:
        return str(tex2mathml(plain_tex(node.astext()), as_block=is_block))
    except MathError as problem:
        logger.warning("formula %r: %s", node.astext(), problem, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(f'<span class="math">{formula_as_mathml(node, False)}</span>')
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(f"{formula_as_mathml(node, True)}</div>\n")
    raise nodes.SkipNode


def setup_mathml(app: Any) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
