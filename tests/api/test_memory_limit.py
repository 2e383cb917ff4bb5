"""Are rows collected only if they fit into the memory of the container or the machine?"""

from __future__ import annotations

from pathlib import Path

import pytest

import trueodds as to
from trueodds.api import arguments
from trueodds.api.arguments import BASE_BYTES, BYTES_PER_PROBABILITY, MAX_PROBABILITIES


@pytest.mark.parametrize(
    ("membership", "files", "limits"),
    [
        ("0::/\n", {"memory.max": "2000"}, [2000]),  # in a container
        (
            "0::/job/step\n",
            {"job/memory.max": "3000", "job/step/memory.max": "max", "memory.max": "9000"},
            [3000, 9000],
        ),
        ("4:cpu:/x\n9:memory:/job\n", {"memory/job/memory.limit_in_bytes": "500", "memory.max": "7"}, [500]),
        ("", {}, []),
    ],
)
def test_the_limits_of_all_control_groups_are_read(
    tmp_path: Path, membership: str, files: dict[str, str], limits: list[int]
) -> None:
    (tmp_path / "cgroup").write_text(membership, encoding="utf-8")
    root = tmp_path / "fs"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    limit_files = [file for file in arguments._limit_files(tmp_path / "cgroup", root) if file.exists()]
    assert (
        sorted(
            int(file.read_text(encoding="utf-8")) for file in limit_files if file.read_text(encoding="utf-8") != "max"
        )
        == limits
    )


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], MAX_PROBABILITIES),
        ([2**36], MAX_PROBABILITIES),
        ([2**36, BASE_BYTES + 1000 * BYTES_PER_PROBABILITY], 1000),
        ([BASE_BYTES // 2], 0),
    ],
)
def test_the_smallest_memory_decides(monkeypatch: pytest.MonkeyPatch, sizes: list[int], expected: int) -> None:
    monkeypatch.setattr(arguments, "_memory_sizes", lambda: iter(sizes))
    assert arguments.max_probabilities_in_memory.__wrapped__() == expected


def test_rows_that_do_not_fit_into_memory_are_tallied(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"label": [0, 1] * 50, "p": [0.2, 0.7] * 50}
    for limit, is_tallied in ((200, False), (199, True)):
        monkeypatch.setattr("trueodds.api.arguments.max_probabilities_in_memory", lambda limit=limit: limit)
        notes = [note.code for note in to.measure(to.read(rows, probs="p"), "ece").notes]
        assert ("TN405" in notes) == is_tallied
