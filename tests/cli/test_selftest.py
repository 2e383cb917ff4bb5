"""Does trueodds selftest say what passed, write its record, and fail where it must?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import trueodds as to
from trueodds.cli import main
from trueodds.selftest import laws, levels, record, reference_numbers

SCHEMA = Path(record.__file__).parents[1] / "schema" / "selftest.json"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer data sets and cases. The limits follow from the numbers, and the data sets from the fixed seed."""
    monkeypatch.setattr(levels, "EXACT_TESTS", {"spiegelhalter": {"null": "redraw"}})
    monkeypatch.setattr(levels, "N_SETS", 40)
    monkeypatch.setattr(levels, "TRUE_VALUES", {"calibration_in_the_large": -1 / 6})
    monkeypatch.setattr(levels, "N_COVERAGE_SETS", 60)
    stored = dict(reference_numbers.read_stored())
    stored["cases"] = stored["cases"][:3]
    for module in (reference_numbers, record):
        monkeypatch.setattr(module, "read_stored", lambda: stored)


def rows(path: Path, k: int = 3) -> str:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(k), 90)
    names = [f"p_{c}" for c in range(k)]
    lines = [",".join(["y", *names]), *(f"{i % k}," + ",".join(map(repr, p.tolist())) for i, p in enumerate(P))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["selftest", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_record_of_rows_in_a_file_is_a_page_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = rows(tmp_path / "mine.csv"), tmp_path / "new" / "record"
    assert run(file, "--label", "y", "--out", str(out)) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Self-test passed: ")
    document: Any = json.loads((out / "selftest.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(document)
    assert (document["passed"], document["n_failed"], document["rows"]) == (True, 0, f"all 90 rows of {file}")
    assert f"The laws were also checked on all 90 rows of {file}." in printed
    names = [check["name"] for check in document["checks"] if check["section"] == "laws"]
    assert sum(f"(all 90 rows of {file})" in name for name in names) >= 4  # in addition to those on the built-in rows
    (ece,) = [claim for claim in document["trace"] if claim["claim"].startswith("ece:")]
    assert (ece["page"], ece["status"]) == ("docs/estimators.md", "passed")
    page = (out / "selftest.html").read_text(encoding="utf-8")
    assert "mine.csv" in page
    assert ece["tests"][0] in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_rows_of_several_files_are_read_up_to_a_limit_that_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [rows(tmp_path / f"{name}.csv") for name in "ab"]
    read: list[tuple[int, str]] = []

    def report(_: Any, preds: to.Predictions, which: str) -> record.SelftestReport:
        read.append((preds.n, which.removesuffix(f" of {files[0]}, {files[1]}")))
        return record.SelftestReport((), (), {})

    monkeypatch.setattr(record, "run_selftest", report)
    for limit in (20_000, 180, 100, 90):
        monkeypatch.setattr(laws, "MAX_ROWS", limit)
        run(*files, "--label", "y")
    assert read == [
        (180, "all 180 rows"),
        (180, "all 180 rows"),
        (100, "the first 100 rows"),
        (90, "the first 90 rows"),
    ]


@pytest.mark.usefixtures("small")
def test_a_wrong_number_fails_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = to.measure

    def wrong(*args: Any, **settings: Any) -> Any:
        estimate = measure(*args, **settings)
        object.__setattr__(estimate, "value", estimate.value * (1 + 1e-7))
        return estimate

    monkeypatch.setattr(to, "measure", wrong)
    assert run("--out", str(tmp_path)) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("Self-test failed: ")
    assert "Failed:\n  reference numbers, ece · bins 10: 0.08715" in printed
    document = json.loads((tmp_path / "selftest.json").read_text(encoding="utf-8"))
    assert {claim["status"] for claim in document["trace"] if claim["claim"].startswith("ece:")} == {"failed"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--label", "y"], "Without files no rows are read"),
        (["no-such.csv"], "no-such.csv"),
        (["--out", "a-file"], "The folder of the record cannot be made"),
    ],
)
def test_usage_errors_are_2_before_anything_is_checked(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "_run_section", lambda *_: pytest.fail("checked"))
    Path("a-file").write_text("", encoding="utf-8")
    assert run(*words) == 2
    assert said in capsys.readouterr().err


def test_a_tally_is_refused_because_it_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from trueodds.tallies import tally_sums

    tally_sums.save(to.tally(to.Predictions([0, 1], [0.2, 0.7])), str(tmp_path / "a.tally.json"))
    assert run(str(tmp_path / "a.tally.json")) == 2
    assert "TO603" in capsys.readouterr().err
