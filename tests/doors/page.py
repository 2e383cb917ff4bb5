"""The examples of docs/how_to/other_tools.md, by the heading they stand under."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "other_tools.md"


def example(heading: str) -> str:
    """The one block of Python under a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return block
