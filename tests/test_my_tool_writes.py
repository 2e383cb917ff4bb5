"""Is every file of the page of other tools read with the options and the arguments that stand beside it?"""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "coming_from" / "my_tool_writes.md"
ROW = re.compile(
    r"^\| (?P<tool>[^|]+) \| `(?P<file>[^|]+)` \| (?P<content>[^|]+) \| `(?P<words>[^|]+)` \| `(?P<call>[^|]+)` \|$"
)
ROWS = [match.groupdict() for line in PAGE.read_text(encoding="utf-8").splitlines() if (match := ROW.match(line))]


def written(row: dict[str, str], folder: Path) -> str:
    lines = [line.removeprefix("`").removesuffix("`") for line in row["content"].split("<br>")]
    path = folder / row["file"]
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(list(map(json.loads, lines))), path)
    else:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def keywords(call: str) -> dict[str, Any]:
    """The arguments of a call as they are written on the page."""
    parsed = ast.parse(f"f({call})", mode="eval").body
    assert isinstance(parsed, ast.Call)
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in parsed.keywords}


def test_the_table_of_the_page_is_read() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(table) - 1 >= 25


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_a_file_of_another_tool_is_read_with_the_arguments_beside_it(row: dict[str, str], tmp_path: Path) -> None:
    preds = to.read(written(row, tmp_path), **keywords(row["call"])).collect()
    assert preds.y is not None
    # The true classes are the first and twice the second, whose probabilities are 0.25, 0.5 and 0.75.
    assert preds.P[np.arange(3), preds.y].tolist() == [0.75, 0.5, 0.75]


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_a_file_of_another_tool_is_read_with_the_options_beside_it(row: dict[str, str], tmp_path: Path) -> None:
    words = ["measure", written(row, tmp_path), *shlex.split(row["words"]), "--estimator", "brier", "--json", "-"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    # The Brier score of two classes: (0.25² + 0.5² + 0.25²)/3 = 0.125.
    assert json.loads(result.stdout)["value"] == pytest.approx(0.125, abs=1e-15)
