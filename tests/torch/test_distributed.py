"""Do two processes of torch.distributed give what one gives?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

WORKER = """
import json, sys
import torch
import torch.distributed as distributed
from tests.torch.batches import predictions, split
from trueodds import InputError
from trueodds.torch import CalibrationError, TorchTally

rank, store, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
z, y = predictions(2000, 5)
batches = list(split(z, y, size=150))
tally, metric = TorchTally(5, logits=True), CalibrationError(5, logits=True)
for batch in batches[rank::2]:
    tally.update(*batch)
    metric.update(*batch)
tally.all_reduce()
value = metric.compute().item()
estimate = metric.estimate(interval=None)
alone = CalibrationError(5, logits=True)  # one process has no rows
if rank == 0:
    alone.update(z, y)
same = alone.compute().item() == alone.estimate(interval=None).value and alone.tally().n == 2000
try:
    CalibrationError(5, logits=bool(rank)).tally()
    code_of_metric = None
except InputError as problem:
    code_of_metric = problem.code
try:
    TorchTally(5, logits=True, bins=10 + rank).all_reduce()
    code = None
except InputError as problem:
    code = problem.code
if rank == 0:
    tally.compute().save(out + ".tally.json")
values = [tally.estimate(interval=None).value, value, estimate.value]
print(json.dumps([tally.n, estimate.n, values, same, [code, code_of_metric]]))
distributed.destroy_process_group()
"""


def test_two_processes_give_the_sums_of_one(tmp_path: Path) -> None:
    import json

    import numpy as np

    import trueodds as to
    from tests.torch.batches import predictions

    arguments = [str(tmp_path / "store"), str(tmp_path / "sums")]
    root = Path(__file__).parents[2]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), *arguments],
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for rank in (0, 1)
    ]
    results = [json.loads(process.communicate(timeout=100)[0].splitlines()[-1]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    z, y = predictions(2000, 5)
    one = to.tally(to.Predictions.from_logits(y.numpy(), z.numpy()))
    expected = to.measure(one, interval=None).value
    for n, n_of_metric, values, same, codes in results:
        assert (n, n_of_metric, same) == (2000, 2000, True)
        assert values == pytest.approx([expected] * 3, rel=1e-12)
        assert codes == ["TO401", "TO401"]
    both = to.load(str(tmp_path / "sums.tally.json"))
    np.testing.assert_array_equal(both.cells.n, one.cells.n)
    np.testing.assert_allclose(both.cells.sums, one.cells.sums, rtol=1e-12)
    np.testing.assert_allclose(both.null, one.null, rtol=1e-12, atol=1e-12)
