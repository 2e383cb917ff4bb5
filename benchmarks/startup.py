"""Benchmark of the start-up: CPU time of new processes from the import to the first result.

A first result is measured with compiled kernels cached on disk, and with an empty cache.
"""

from __future__ import annotations

import sys
import tempfile

from benchmarks.process_cost import ProcessCost, measure_process, trueodds_command

TIME_LIMIT = 1.2  # CPU seconds of a first `measure` that a user perceives as immediate

TWO_CLASSES = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
p = rng.random(1000)
preds = to.Predictions((rng.random(1000) < p).astype(int), p)
"""
MEASURE_VALUE = TWO_CLASSES + "to.measure(preds, 'ece', interval=None)"
MEASURE_WITH_INTERVAL = TWO_CLASSES + "to.measure(preds, 'ece')"
TEN_CLASSES = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(10), 20_000)
preds = to.Predictions((P.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1), P)
"""
MEASURE_TEN_CLASSES = TEN_CLASSES + "to.measure(preds, 'ece')"
AUDIT_TEN_CLASSES = TEN_CLASSES + "to.audit(preds[:900]).to_html('{page}')"


def measure_startup(repeats: int) -> list[tuple[str, str]]:
    """Return lines (what is measured, result) on imports and first calls, each in a new process."""
    python = [sys.executable, "-c"]
    for code in (MEASURE_VALUE, MEASURE_WITH_INTERVAL):
        measure_process([*python, code])  # compiles the kernels, which are cached afterwards
    commands = {
        "python -c pass": [*python, "pass"],
        "import numpy": [*python, "import numpy"],
        "trueodds --help": [trueodds_command(), "--help"],
        "import trueodds": [*python, "import trueodds"],
        "first measure, value alone": [*python, MEASURE_VALUE],
        f"first measure, interval and floor (≤ {TIME_LIMIT})": [*python, MEASURE_WITH_INTERVAL],
    }
    lines = [(name, f"{measure_process(command, repeats).cpu:.3f} CPU-s") for name, command in commands.items()]
    with tempfile.TemporaryDirectory() as folder:
        audit = AUDIT_TEN_CLASSES.format(page=f"{folder}/page.html")
        for name, code in {"ECE of 20,000 × 10": MEASURE_TEN_CLASSES, "audit of 900 × 10 with page": audit}.items():
            empty_cache_cost = measure_process([*python, code], empty_cache=True)
            lines.append((f"first {name}, empty cache", _format_cost(empty_cache_cost)))
            lines.append((f"first {name}, cached", _format_cost(measure_process([*python, code], repeats))))
    return lines


def _format_cost(cost: ProcessCost) -> str:
    return f"{cost.cpu:.1f} CPU-s, {cost.wall:.1f} s"
