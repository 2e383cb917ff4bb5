"""CPU time of new processes until the first result, including imports, with compiled code cached on disk."""

from __future__ import annotations

import sys

from benchmarks.process import command_line, cost

TIME_LIMIT = 1.2  # CPU seconds of a first `measure` that a user perceives as immediate

DATA = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
p = rng.random(1000)
preds = to.Predictions((rng.random(1000) < p).astype(int), p)
"""
BARE = DATA + "to.measure(preds, 'ece', interval=None)"
FULL = DATA + "to.measure(preds, 'ece')"


def figures(repeats: int) -> list[tuple[str, str]]:
    """CPU time of the import, and including the first call."""
    python = [sys.executable, "-c"]
    for warm in (BARE, FULL):
        cost([*python, warm])
    commands = {
        "python -c pass": [*python, "pass"],
        "import numpy": [*python, "import numpy"],
        "trueodds --help": [*command_line(), "--help"],
        "import trueodds": [*python, "import trueodds"],
        "first measure, value alone": [*python, BARE],
        f"first measure, interval and floor (≤ {TIME_LIMIT})": [*python, FULL],
    }
    return [(what, f"{cost(command, repeats).cpu:.3f} CPU-s") for what, command in commands.items()]
