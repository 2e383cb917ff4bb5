"""Formulas in the part of LaTeX that docutils converts to MathML."""

from __future__ import annotations

import re

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
