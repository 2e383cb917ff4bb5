"""Rows that were kept count for the same plan, version and data only."""

import json
from dataclasses import dataclass

import pytest

import trueodds as to
from trueodds_studies.common.resumable_runs import run_cells
from trueodds_studies.common.study_result import format_change, format_count, format_range


@dataclass(frozen=True)
class Plan:
    sets: int = 3
    rows: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Cell:
    key: str


CELLS = [Cell("a"), Cell("b")]


def measured_as(value, keys):
    """Cells are measured in this process where they are few."""

    def measure(cell, plan):
        keys.append(cell.key)
        return {"cell": cell.key, "value": value}

    return measure


def run(where, value, cells=CELLS, plan=None, **settings):
    """The values of the rows, and the cells that were measured for them."""
    keys = []
    rows = run_cells("made", cells, measured_as(value, keys), plan or Plan(), where, **settings)
    return [row["value"] for row in rows], keys


def test_a_study_goes_on_where_plan_version_and_data_are_the_same(tmp_path):
    assert run(tmp_path, 1, CELLS[:1], file_hashes={"x.npz": "11"}) == ([1], ["a"])
    assert run(tmp_path, 2, file_hashes={"x.npz": "11"}) == ([1, 2], ["b"])


def test_rows_of_other_data_another_plan_or_another_version_are_measured_again(tmp_path, monkeypatch):
    run(tmp_path, 1, file_hashes={"x.npz": "11"})
    assert run(tmp_path, 2, file_hashes={"x.npz": "22"}) == ([2, 2], ["a", "b"])
    assert run(tmp_path, 3, plan=Plan(sets=4), file_hashes={"x.npz": "22"}) == ([3, 3], ["a", "b"])
    monkeypatch.setattr("trueodds_studies.common.resumable_runs.__version__", "0.0.0")
    assert run(tmp_path, 4, plan=Plan(sets=4), file_hashes={"x.npz": "22"}) == ([4, 4], ["a", "b"])


def test_a_file_that_one_run_reads_and_the_other_does_not_parts_them_not_but_is_remembered(tmp_path):
    first, second = [CELLS[0]], [CELLS[1]]
    run(tmp_path, 1, first, file_hashes={"x.npz": "11"})
    assert run(tmp_path, 2, second, file_hashes={"y.npz": "33"}) == ([2], ["b"])
    assert run(tmp_path, 3, file_hashes={"x.npz": "11", "y.npz": "33"}) == ([1, 2], [])
    assert run(tmp_path, 4, second, file_hashes={"x.npz": "22"}) == (
        [4],
        ["b"],
    )  # x is another file by now: nothing of it is left
    assert run(tmp_path, 5, file_hashes={"x.npz": "22"}) == ([5, 4], ["a"])


@pytest.mark.parametrize("head", ['{"sets": 3, "rows": [1, 2]}', "[]", "no JSON", ""])
def test_a_file_with_another_first_line_is_begun_anew(head, tmp_path):
    (tmp_path / "made.cells.jsonl").write_text(f'{head}\n["a", {{"value": 7}}]\n', encoding="utf-8")
    assert run(tmp_path, 1) == ([1, 1], ["a", "b"])
    header = json.loads((tmp_path / "made.cells.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header == {"trueodds": to.__version__, "plan": {"sets": 3, "rows": [1, 2]}, "data": {}}


# Words


def test_sentences_follow_the_numbers():
    assert (format_count(1, "net"), format_count(0, "net"), format_count(12, "split")) == (
        "1 net",
        "0 nets",
        "12 splits",
    )
    assert (format_range([0.3, 0.1, 0.2], 1), format_range([0.12], 1), format_range([0.11, 0.12], 1)) == (
        "0.1 to 0.3",
        "0.1",
        "0.1",
    )
    assert (format_change(0.2, 0.1, 1), format_change(0.1, 0.2, 1)) == (
        "falls from 0.2 to 0.1",
        "rises from 0.1 to 0.2",
    )
    assert format_change(0.101, 0.102, 2) == "stays at 0.10"
    assert format_change(0.1, float("nan"), 1) == "goes from 0.1 to nan"
