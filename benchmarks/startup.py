"""CPU time of new processes until the first result, including imports, with and without compiled code on disk."""

from __future__ import annotations

import sys
import tempfile

from benchmarks.process import Cost, command_line, cost

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
TEN_CLASSES = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(10), 20_000)
preds = to.Predictions((P.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1), P)
"""
ECE = TEN_CLASSES + "to.measure(preds, 'ece')"
AUDIT = TEN_CLASSES + "to.audit(preds[:900]).to_html('{page}')"


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
    lines = [(what, f"{cost(command, repeats).cpu:.3f} CPU-s") for what, command in commands.items()]
    with tempfile.TemporaryDirectory() as folder:
        audit = AUDIT.format(page=f"{folder}/page.html")
        for what, code in {"ECE of 20,000 × 10": ECE, "audit of 900 × 10 with page": audit}.items():
            lines.append((f"first {what}, empty cache", _seconds(cost([*python, code], empty_cache=True))))
            lines.append((f"first {what}, cached", _seconds(cost([*python, code], repeats))))
    return lines


def _seconds(used: Cost) -> str:
    return f"{used.cpu:.1f} CPU-s, {used.wall:.1f} s"
