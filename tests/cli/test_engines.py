"""Do engines and stopped counts work from the command line?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.io.engines import table
from trueodds.tallies import tally_reader

pytest.importorskip("dask")


@pytest.fixture
def parts(folder: Path) -> str:
    frame = table(600)
    for number in range(3):
        frame[number * 200 : (number + 1) * 200].to_parquet(folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def test_an_audit_by_dask_is_the_audit_of_this_process(run: Run, parts: str) -> None:
    how = ["audit", parts, "--mode", "tally", "--group", "site", "--resamples", "99", "--json", "-"]
    local, distributed = (json.loads(run(*how, "--engine", engine).stdout) for engine in ("arrow", "dask"))
    assert local["data"]["n"] == 600
    assert local["recalibration"] is not None  # looked for on a sample, which here is all rows
    assert local["verdict"] == distributed["verdict"]
    assert local["recalibration"] == distributed["recalibration"]
    assert [measure["value"] for measure in local["measures"]] == pytest.approx(
        [measure["value"] for measure in distributed["measures"]], rel=1e-12
    )


def test_a_tally_that_is_resumed_leaves_no_state_behind(run: Run, parts: str, folder: Path) -> None:
    done = run("tally", parts, "--out", folder / "a.tally.json", "--resume", folder / "state.json")
    assert done.exit_code == 0, done.output
    assert tally_reader.load(folder / "a.tally.json").n == 600
    assert not (folder / "state.json").exists()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("--scheduler tcp://127.0.0.1:9", "TO601"),
        ("--master local[2] --engine dask", "TO601"),
        ("--engine dask --row-id nobody", "TO304"),
        ("--engine dask --logprobs z", "TO603"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, parts: str, more: str, code: str) -> None:
    done = run("measure", parts, *more.split())
    assert done.exit_code == 2
    assert code in done.output
