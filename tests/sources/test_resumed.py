"""Does a count that was stopped go on where it was, to the last bit, and only with the files that it began with?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sources.engines import table
from trueodds import InputError, Predictions, read, tally
from trueodds.sources.resumed import resumed
from trueodds.tally import wire
from trueodds.tally.tally import Tally


class Stopped(Exception):
    """As if the machine went down."""


def files(folder: Path, *, row_group_size: int = 100) -> str:
    frame = table(1_000, weight=True)
    for number in range(4):
        part = frame[number * 250 : (number + 1) * 250]
        part.to_parquet(folder / f"{number}.parquet", row_group_size=row_group_size)
    return str(folder / "*.parquet")


def opened(pattern: str) -> Any:
    return read(pattern, group="site", weight="w", batch_rows=70)


def stopping(left: list[int], batch: Predictions) -> Tally:
    if not left:
        raise Stopped
    left.pop()
    return Tally.of(batch)


@pytest.mark.parametrize("batches", [1, 3, 4, 7, 15])
def test_a_count_that_was_stopped_ends_with_the_same_bits(tmp_path: Path, batches: int) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    with pytest.raises(Stopped):
        resumed(opened(pattern), partial(stopping, [0] * batches), state, {})
    seen: list[int] = []
    found = resumed(opened(pattern), Tally.of, state, {}, progress=lambda done, total: seen.append(done))
    assert wire.dumps(found) == wire.dumps(opened(pattern).reduce(Tally.of))
    assert seen[0] > batches * 50  # it did not begin anew
    assert seen[-1] == 1_000


def test_files_that_are_counted_already_are_not_opened_for_their_rows_again(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    with pytest.raises(Stopped):
        resumed(opened(pattern), partial(stopping, [0] * 9), state, {})
    source = opened(pattern)

    def refused(*_: Any) -> Any:
        raise AssertionError("read again")

    source.tables[0].batches = source.tables[1].batches = refused
    assert resumed(source, Tally.of, state, {}).n == 1_000


def test_a_count_that_was_ended_is_told_again_without_reading(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    first = tally(opened(pattern), resume=state)
    assert wire.dumps(tally(opened(pattern), resume=state)) == wire.dumps(first)


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
        resumed(opened(pattern), partial(stopping, [0] * 3), state, {})
    again = read(pattern, **{"group": "site", "weight": "w", "batch_rows": 70, **other})
    with pytest.raises(InputError, match=r"TO331.*other settings"):
        resumed(again, Tally.of, state, {})
    assert resumed(opened(pattern), Tally.of, state, {}).n == 1_000


def test_what_is_no_state_is_refused(tmp_path: Path) -> None:
    pattern, state = files(tmp_path), tmp_path / "state.tally.json"
    Tally.of(Predictions([0, 1], [0.2, 0.7])).save(state)
    with pytest.raises(InputError, match="TO402"):
        tally(opened(pattern), resume=state)
    with pytest.raises(InputError, match="TO205"):
        tally(read(([0, 1], [0.2, 0.7])), resume=tmp_path / "b.json")
