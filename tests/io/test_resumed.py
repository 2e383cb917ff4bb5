"""Does a count that was stopped go on where it was, to the last bit, and only with the files that it began with?"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.engines import table
from trueodds import InputError, Predictions, read, tally
from trueodds.api.tally import resume_tally
from trueodds.tallies import tally_sums
from trueodds.tallies.tally import Tally


class Stopped(Exception):
    """As if the machine went down."""


def files(folder: Path, *, row_group_size: int = 100) -> str:
    frame = table(1_000, weight=True)
    for number in range(4):
        part = frame[number * 250 : (number + 1) * 250]
        part.to_parquet(folder / f"{number}.parquet", row_group_size=row_group_size)
    return str(folder / "*.parquet")


def opened(pattern: str, weight: str | None = "w") -> Any:
    return read(pattern, group="site", weight=weight, batch_rows=70)


def stopping(left: list[int], batch: Predictions) -> Tally:
    if not left:
        raise Stopped
    left.pop()
    return Tally.from_predictions(batch)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("batches", [1, 3, 4, 7, 15])
def test_a_count_that_was_stopped_ends_with_the_same_bits(tmp_path: Path, batches: int, weight: str | None) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    with pytest.raises(Stopped):
        resume_tally(opened(pattern, weight), partial(stopping, [0] * batches), state, {})
    steps: list[int] = []
    tally = resume_tally(
        opened(pattern, weight), Tally.from_predictions, state, {}, progress=lambda done, total: steps.append(done)
    )
    assert tally_sums.dumps(tally) == tally_sums.dumps(opened(pattern, weight).reduce(Tally.from_predictions))
    assert steps[0] > batches * 50  # it did not begin anew
    assert steps[-1] == 1_000


def test_files_that_are_counted_already_are_not_opened_for_their_rows_again(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    with pytest.raises(Stopped):
        resume_tally(opened(pattern), partial(stopping, [0] * 9), state, {})
    source = opened(pattern)

    def refused(*_: Any) -> Any:
        raise AssertionError("read again")

    source.tables[0].column_batches = source.tables[1].column_batches = refused
    assert resume_tally(source, Tally.from_predictions, state, {}).n == 1_000


@pytest.mark.slow
def test_a_finished_count_is_returned_again_without_reading(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    first = tally(opened(pattern), resume=state)
    assert tally_sums.dumps(tally(opened(pattern), resume=state)) == tally_sums.dumps(first)


def test_the_state_of_other_files_or_settings_is_refused(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    tally(opened(pattern), resume=state)
    with pytest.raises(InputError, match=r"TO331.*other settings"):
        tally(opened(pattern), bins=10, resume=state)
    table(250, weight=True, seed=5).to_parquet(tmp_path / "3.parquet")
    with pytest.raises(InputError, match=r"TO331.*other files"):
        tally(opened(pattern), resume=state)


@pytest.mark.parametrize(
    "other", [{"batch_rows": 100}, {"weight": None}, {"probs": ["p_c", "p_b", "p_a"], "classes": ["a", "b", "c"]}]
)
def test_rows_that_are_read_otherwise_are_not_added_to_the_state(tmp_path: Path, other: dict[str, Any]) -> None:
    # The batches of 100 rows never met the end of the third of 70: all rows after it were passed over in silence.
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    with pytest.raises(Stopped):
        resume_tally(opened(pattern), partial(stopping, [0] * 3), state, {})
    reread = read(pattern, **{"group": "site", "weight": "w", "batch_rows": 70, **other})
    with pytest.raises(InputError, match=r"TO331.*other settings"):
        resume_tally(reread, Tally.from_predictions, state, {})
    assert resume_tally(opened(pattern), Tally.from_predictions, state, {}).n == 1_000


def stopped(folder: Path) -> tuple[str, Path]:
    """Files, and the state of a count of them that was stopped after 420 of 1,000 rows."""
    pattern, state = files(folder), folder / "state.tally.json"
    with pytest.raises(Stopped):
        resume_tally(opened(pattern), partial(stopping, [0] * 6), state, {})
    return pattern, state


@pytest.mark.parametrize("rows", [0, 100, 419, 1_000, -10, None, "420"])
def test_rows_that_were_edited_in_a_state_are_not_believed(tmp_path: Path, rows: Any) -> None:
    # With rows=0 a count of 60 rows ended at 90, with 20 of 30 at 70.
    pattern, state = stopped(tmp_path)
    head, body = state.read_text(encoding="utf-8").split("\n", 1)
    state.write_text(
        head + "\n" + tally_sums.to_strict_json(json.loads(body) | {"rows": rows}) + "\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"TO402.*changed"):
        resume_tally(opened(pattern), Tally.from_predictions, state, {})


@pytest.mark.slow
def test_no_byte_of_a_state_can_be_changed_unseen(tmp_path: Path) -> None:
    pattern, state = stopped(tmp_path)
    content, draw = state.read_bytes(), np.random.default_rng(0)
    source = opened(pattern)
    places = [*range(150), *draw.integers(len(content), size=100).tolist(), len(content) - 1]
    changed = [content[:at] + bytes([content[at] ^ 1 << int(draw.integers(8))]) + content[at + 1 :] for at in places]
    cut = [content[:at] for at in draw.integers(len(content), size=50).tolist()]
    for other in [*changed, *cut, b"", b"{}", content + b"\n", content.replace(b"\n", b"\r\n"), b"[" * 100_000]:
        state.write_bytes(other)
        with pytest.raises(InputError, match="TO402"):
            resume_tally(source, Tally.from_predictions, state, {})
    state.write_bytes(content)
    assert tally_sums.dumps(resume_tally(source, Tally.from_predictions, state, {})) == tally_sums.dumps(
        source.reduce(Tally.from_predictions)
    )


def test_rows_of_weight_0_are_read_but_not_counted_in_a_state(tmp_path: Path) -> None:
    table = "label,p_1,w\n" + "".join(f"{i % 2},0.5,{i % 3}\n" for i in range(60))
    (tmp_path / "a.csv").write_text(table, encoding="utf-8")
    source, state = read(tmp_path / "a.csv", weight="w", batch_rows=10), tmp_path / "state.json"
    with pytest.raises(Stopped):
        resume_tally(source, partial(stopping, [0] * 3), state, {})
    tally = resume_tally(source, Tally.from_predictions, state, {})
    assert tally.n == 40
    assert tally_sums.dumps(tally) == tally_sums.dumps(source.reduce(Tally.from_predictions))


def test_the_state_of_another_version_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    pattern, state = stopped(tmp_path)
    monkeypatch.setattr("trueodds.__version__", "0.0.1")
    with pytest.raises(InputError, match=r"TO331.*other version"):
        resume_tally(opened(pattern), Tally.from_predictions, state, {})


KILLED = """
import contextlib, os, signal, sys
from trueodds.cli import main
import trueodds.api.tally

resumed = sys.modules["trueodds.api.tally"]
folder, resumed.SECONDS_BETWEEN_SAVES = sys.argv[1], 0.0  # a state after each batch
command = ["tally", folder + "/*.parquet", "--group", "site", "--weight", "w", "--out"]
left = [0]

def deadly(function):
    def counted(*given):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given)
    return counted

os.fsync, os.chmod, os.replace = map(deadly, (os.fsync, os.chmod, os.replace))
with contextlib.suppress(SystemExit):
    main([*command, folder + "/clean.json"])
for last in (1, 5, 9, 12):  # runs that are killed at their n-th step of writing a file, until one gets through
    state, out = folder + f"/{last}.state", folder + f"/{last}.json"
    for killed_at in (last, last, 2, 0):
        child = os.fork()
        if child == 0:
            left[0] = killed_at
            main([*command, out, "--resume", state])
        status = os.waitpid(child, 0)[1]
        print("killed" if os.WIFSIGNALED(status) else "ended", flush=True)
        if not os.WIFSIGNALED(status):
            break
"""


@pytest.mark.slow
def test_a_run_that_was_killed_ends_with_the_file_of_a_run_that_was_not(tmp_path: Path) -> None:
    files(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, check=True, text=True, encoding="utf-8").stdout
    assert output.count("killed") >= 8
    for last in (1, 5, 9, 12):
        assert (tmp_path / f"{last}.json").read_bytes() == (tmp_path / "clean.json").read_bytes()
    assert not list(tmp_path.glob("*.state"))


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    Tally.from_predictions(Predictions([0, 1], [0.2, 0.7])).save(state)
    with pytest.raises(InputError, match="TO402"):
        tally(opened(pattern), resume=state)
    with pytest.raises(InputError, match="TO205"):
        tally(read(([0, 1], [0.2, 0.7])), resume=tmp_path / "b.json")
