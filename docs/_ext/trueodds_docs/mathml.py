"""Formulas as MathML, which browsers show without a script or a request."""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

from .formulas import plain_tex

logger = logging.getLogger(__name__)


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
    # A long formula scrolls, which the keyboard can do only in what it can reach.
    attributes = {"class": "math", "tabindex": "0", "role": "group", "aria-label": "Formula"}
    translator.body.append(translator.starttag(node, "div", **attributes))
    translator.body.append(f"{formula_as_mathml(node, True)}</div>\n")
    raise nodes.SkipNode


def setup_mathml(app: Any) -> None:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
