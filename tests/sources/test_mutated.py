"""Is whatever becomes of a file told by code, or harmless? Thousands of mutated files, read by every reader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sources.mutated import answer, mutated
from trueodds import Predictions, read
from trueodds.problem.joined import joined
from trueodds.sources import csv_chunks

CSV = {
    "plain": b"label,p_0,p_1,w\n" + b"".join(b"%d,0.%d,0.%d,%d\n" % (i % 2, i, 10 - i, i) for i in range(1, 10)) * 3,
    "names": b"\xef\xbb\xbfnote,label,p_cat,p_dog\r\n" + b"some text,cat,0.25,0.75\r\na long note,dog,1,0\r\n" * 5,
    "quoted": b'"label",p_0,p_1,"site",note\n' + b'0,"0.5",0.5,"north","a, ""b"", c"\n1,0,1,"a\nb",\n\n' * 5,
    "literal": b"label,p_0,p_1,site\n" + b'0,0.5,0.5,5" pipe\n1,0.25,0.75,6"\n' * 6,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {"weight": "w"},
    "names": {},
    "quoted": {"group": "site"},
    "literal": {"group": "site"},
}


def both_csv_readers(path: Path, draw: np.random.Generator, settings: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What the reader with Arrow and the one without make of a file, whole or in batches."""
    size, whole = int(draw.choice([1, 2, 3, 5, 65536])), draw.random() < 0.5

    def rows() -> Predictions:
        source = read(path, batch_rows=size, **settings)
        return source.collect() if whole else joined(list(source.batches()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_chunks, "CHUNK", int(draw.choice([8, 40, 100, 1 << 22])))
        answers = [answer(rows)]
        patch.setitem(sys.modules, "pyarrow", None)
        return [*answers, answer(rows)]


def test_both_csv_readers_give_the_same_answer_on_mutated_files(tmp_path: Path) -> None:
    differing = [seed for seed in range(300) if differs(seed, tmp_path)]
    assert differing == []


def differs(seed: int, folder: Path) -> bool:
    draw = np.random.default_rng(seed)
    kind = draw.choice(list(CSV))
    path = folder / "a.csv"
    path.write_bytes(mutated(CSV[kind], draw))
    with_arrow, without = both_csv_readers(path, draw, SETTINGS[kind])
    return with_arrow != without
