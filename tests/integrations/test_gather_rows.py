"""Do several processes gather exactly the rows that all of them have, also uneven ones and samples?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds.integrations.epoch_summary import RowCollector, copy_to_array, flatten_positions

torch = pytest.importorskip("torch")

from trueodds.integrations.gather_rows import gather_rows  # noqa: E402 - it needs the library

N_ROWS = (150, 61)  # of the two processes

SCRIPT = """
import sys
import numpy as np
import torch
from torch import distributed
from trueodds import InputError
from trueodds.integrations.gather_rows import gather_rows
from trueodds.integrations.epoch_summary import RowCollector

torch.set_num_threads(1)
rank, folder = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
every = np.load(f"{folder}/rows.npz")
start, stop = (0, 150) if rank == 0 else (150, 211)
z, y = every["z"][start:stop], every["y"][start:stop]
results = {}


def gather(name, scores, labels, **settings):
    collector = RowCollector(True, shard=rank, **settings)
    for i in range(0, len(labels), 40):
        collector.add(scores[i : i + 40], labels[i : i + 40])
    gather_rows(collector)
    rows = collector.rows()
    results.update({f"{name}_scores": rows.scores, f"{name}_labels": rows.labels, f"{name}_keys": rows.keys})
    results[f"{name}_counts"] = np.array([collector.n_added, collector.n_ignored])


gather("all", z, y)
gather("one", *((z, y) if rank == 0 else (z[:0], y[:0])))
gather("log_odds", z[:, 0].astype(np.float16 if rank == 0 else np.float64), y > 1)
gather("votes", z, np.eye(3)[y] * 0.8 + 0.2 / 3)
gather("ignored", z, y, ignore_index=2)
gather("sample", z, y, max_probs=90)
nothing = RowCollector(True, shard=rank)
gather_rows(nothing)
results["nothing"] = np.array(nothing.n_added)
try:
    gather("bad", *((z, y) if rank == 0 else (z[:, :2], y % 2)))
except InputError as problem:
    results["bad"] = np.array(str(problem))
np.savez(f"{folder}/result{rank}.npz", **results)
distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"z": rng.normal(size=(sum(N_ROWS), 3)).astype(np.float32), "y": rng.integers(0, 3, sum(N_ROWS))}


@pytest.fixture(scope="module")
def gathered(rows: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes has after gathering."""
    folder = tmp_path_factory.mktemp("processes")
    np.savez(folder / "rows.npz", **rows)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for rank in range(2)
    ]
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0], ended[0][1][-2000:] + ended[1][1][-2000:]
    return [dict(np.load(Path(folder) / f"result{rank}.npz")) for rank in range(2)]


def test_both_processes_have_the_same_rows(gathered: list[dict[str, Any]]) -> None:
    assert gathered[0].keys() == gathered[1].keys()
    for name, values in gathered[0].items():
        np.testing.assert_array_equal(values, gathered[1][name], err_msg=name)


def test_all_rows_are_gathered_unchanged(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    first = gathered[0]
    np.testing.assert_array_equal(first["all_scores"], rows["z"])
    np.testing.assert_array_equal(first["all_labels"], rows["y"])
    assert first["all_scores"].dtype == np.float32
    assert first["all_counts"].tolist() == [211, 0]
    assert len(np.unique(first["all_keys"])) == 211


def test_a_process_without_rows_takes_part(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(gathered[0]["one_scores"], rows["z"][:150])
    np.testing.assert_array_equal(gathered[0]["one_labels"], rows["y"][:150])
    assert gathered[1]["nothing"] == 0


def test_precisions_that_differ_become_the_higher_one(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    expected = rows["z"][:, 0].astype(np.float64)
    expected[:150] = rows["z"][:150, 0].astype(np.float16)
    np.testing.assert_array_equal(gathered[0]["log_odds_scores"], expected)
    np.testing.assert_array_equal(gathered[0]["log_odds_labels"], rows["y"] > 1)


def test_votes_are_gathered(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(gathered[0]["votes_labels"], np.eye(3)[rows["y"]] * 0.8 + 0.2 / 3)


def test_ignored_rows_are_counted(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    n_ignored = int((rows["y"] == 2).sum())
    assert gathered[0]["ignored_counts"].tolist() == [211 - n_ignored, n_ignored]
    np.testing.assert_array_equal(gathered[0]["ignored_scores"], rows["z"][rows["y"] != 2])


def test_a_sample_has_the_smallest_keys_of_all_rows(rows: dict[str, Any], gathered: list[dict[str, Any]]) -> None:
    keys = gathered[0]["all_keys"]
    is_smallest = keys <= np.sort(keys)[29]
    np.testing.assert_array_equal(gathered[0]["sample_scores"], rows["z"][is_smallest])
    np.testing.assert_array_equal(gathered[0]["sample_labels"], rows["y"][is_smallest])
    assert 0 < is_smallest[150:].sum() < 30
    assert gathered[0]["sample_counts"].tolist() == [211, 0]


def test_processes_with_other_classes_are_refused_in_all_of_them(gathered: list[dict[str, Any]]) -> None:
    for result in gathered:
        assert "[TO352]" in str(result["bad"])
        assert "2 and 3 columns" in str(result["bad"])


# Tensors


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "bool"])
def test_tensors_are_copied_exactly(dtype: str) -> None:
    tensor = (3.7 * torch.randn(50, 3, generator=torch.Generator().manual_seed(0))).to(getattr(torch, dtype))
    values = copy_to_array(tensor, "scores")
    np.testing.assert_array_equal(values.astype(np.float64), tensor.double().numpy())
    assert values.dtype.itemsize == max(tensor.element_size(), 4 if dtype == "bfloat16" else 0)
    before = values.copy()
    tensor.zero_()
    np.testing.assert_array_equal(values, before)


def test_probabilities_in_bfloat16_have_the_tolerance_of_their_precision() -> None:
    P = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]).bfloat16().repeat(20, 1)
    assert float(P[0].double().sum()) != 1
    for values in (P, P.reshape(4, 10, 3)):
        collector = RowCollector(False)
        collector.add(*flatten_positions(values, torch.zeros(values.shape[:-1])))
        assert collector.predictions().p.tolist() == P.tolist()
    with refused("TO104", fix="sum_tolerance="):
        collector = RowCollector(False)
        collector.add(P.float(), torch.zeros(40))
        collector.predictions()


def test_a_tensor_with_gradients_is_refused() -> None:
    tensor = torch.zeros(4, 3, requires_grad=True)
    with refused("TO340", "(4, 3)", fix="scores.detach()"):
        RowCollector(True).add(tensor, torch.zeros(4))
    RowCollector(True).add(tensor.detach(), torch.zeros(4))


def test_gathering_needs_a_process_group() -> None:
    collector = RowCollector(True)
    collector.add(torch.zeros(4, 3), torch.zeros(4))
    with pytest.raises((ValueError, RuntimeError), match="process group"):
        gather_rows(collector)
