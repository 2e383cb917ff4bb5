"""measure, test, draw, fit, apply, tally, merge and list: what the library answers is what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trueodds as to
from tests.cli.conftest import Run
from trueodds.binning import distance, partition_by_name
from trueodds.cli.lookup import names_of_family
from trueodds.lenses import lens_by_name


def test_measure_prints_the_library_s_line(run: Run, overconfident: str) -> None:
    result = run("measure", overconfident, "--bins", 10, "--lens", "class:1", "--interval", "none")
    assert result.stdout.splitlines()[0] == repr(
        to.measure(to.read(overconfident), "ece", lens="class:1", bins=10, interval=None)
    )


def test_measure_tells_the_library_s_json(run: Run, overconfident: str) -> None:
    result = run("measure", overconfident, "--estimator", "rmsce", "--distance", "l2", "--seed", 7, "--json", "-")
    assert json.loads(result.stdout) == to.measure(to.read(overconfident), "rmsce", distance="l2", rng=7).to_dict()


def test_test_tells_the_library_s_json(run: Run, overconfident: str) -> None:
    result = run("test", overconfident, "--lens", "classwise", "--resamples", 99, "--json", "-")
    assert json.loads(result.stdout) == to.test(to.read(overconfident), lens="classwise", resamples=99).to_dict()


def test_json_into_a_file_leaves_the_line_on_stdout(run: Run, overconfident: str, folder: Path) -> None:
    result = run("measure", overconfident, "--estimator", "brier", "--json", folder / "b.json")
    assert result.stdout.startswith("brier ")
    assert json.loads((folder / "b.json").read_text(encoding="utf-8"))["estimator"] == "brier"


@pytest.mark.parametrize("ending", ["svg", "png", "pdf", "csv", "json"])
def test_draw_writes_by_the_ending(run: Run, overconfident: str, folder: Path, ending: str) -> None:
    out = folder / f"d.{ending}"
    assert run("draw", overconfident, "--out", out, "--bins", 5, "--set", "style=deviation").exit_code == 0
    table = to.draw(to.read(overconfident), "reliability", bins=5, style="deviation").to_dict()["table"]
    if ending == "csv":
        lines = out.read_text(encoding="utf-8").splitlines()
        assert lines[0].split(",") == list(table)
        assert len(lines) == 1 + len(table["n"])
    elif ending == "json":
        assert json.loads(out.read_text(encoding="utf-8"))["table"] == table
    else:
        assert out.read_bytes()[:5] == {"svg": b"<?xml", "png": b"\x89PNG\r", "pdf": b"%PDF-"}[ending]


def test_draw_refuses_another_ending_before_the_work(run: Run) -> None:
    done = run("draw", "nowhere.csv", "--out", "d.gif")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO606")


def test_classes_that_are_matched_by_position_are_noted(run: Run, folder: Path) -> None:
    rows = [f"{k % 2},{0.3 + k / 100},{0.7 - k / 100}" for k in range(40)]
    (folder / "numbers.csv").write_text("\n".join(["label,p_0,p_1", *rows]), encoding="utf-8")
    (folder / "names.csv").write_text("\n".join(["p_dog,p_cat", *(row[2:] for row in rows)]), encoding="utf-8")
    run("fit", folder / "numbers.csv", "--method", "platt", "--out", folder / "c.json")
    done = run("apply", folder / "c.json", folder / "names.csv", "--out", folder / "out.csv")
    assert (
        "Classes were matched by position because one side has numbers instead of names: dog is class 0, cat is"
        " class 1." in done.stdout
    )
    done = run("apply", folder / "c.json", folder / "numbers.csv", "--out", folder / "out.csv")
    assert "Matched by position" not in done.stdout


def test_fit_then_apply_gives_the_file_with_better_probabilities(run: Run, overconfident: str, folder: Path) -> None:
    cal, out = folder / "cal.json", folder / "better.csv"
    assert run("fit", overconfident, "--method", "temperature", "--out", cal).exit_code == 0
    done = run("apply", cal, overconfident, "--out", out)
    assert done.exit_code == 0
    assert "400 rows" in done.stdout
    before, after = (to.measure(to.read(str(path)), "log_loss", interval=None).value for path in (overconfident, out))
    assert after < before
    calibrator = to.load(str(cal))
    assert to.read(str(out)).collect().P == pytest.approx(calibrator.predict_proba(to.read(overconfident).collect().P))


def named(path: Path, first: str, second: str) -> Path:
    """Two hundred rows about cats and dogs, with the two columns in the order given."""
    lines = [f"label,p_{first},p_{second}"]
    for i in range(200):
        dog = (i % 20) / 20
        p = {"dog": dog, "cat": 1 - dog}
        lines.append(f"{'dog' if i % 400 < 400 * dog**3 else 'cat'},{p[first]},{p[second]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_fix_follows_the_names_of_the_classes_not_the_order_of_the_columns(run: Run, folder: Path) -> None:
    one, other = named(folder / "cd.csv", "cat", "dog"), named(folder / "dc.csv", "dog", "cat")
    cal = folder / "cal.json"
    assert run("fit", one, "--method", "isotonic", "--out", cal).exit_code == 0
    p_dog = []
    for path in (one, other):
        out = folder / f"{path.stem}-better.csv"
        assert run("apply", cal, path, "--out", out).exit_code == 0
        head, *lines = out.read_text(encoding="utf-8").splitlines()
        rows = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
        p_dog.append([float(row["p_dog"]) for row in rows])
    assert p_dog[0] == pytest.approx(p_dog[1], abs=1e-12)


def test_a_fix_for_other_classes_is_refused(run: Run, folder: Path) -> None:
    one, cal = named(folder / "cd.csv", "cat", "dog"), folder / "cal.json"
    run("fit", one, "--method", "temperature", "--out", cal)
    birds = folder / "birds.csv"
    birds.write_text("p_hen,p_owl\n0.5,0.5\n", encoding="utf-8")
    done = run("apply", cal, birds, "--out", folder / "x.csv")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO607")
    assert run("apply", cal, birds, "--probs", "p_hen,p_owl", "--out", folder / "x.csv").exit_code == 0


@pytest.mark.slow
def test_merged_tallies_are_the_tally_of_all_rows(run: Run, overconfident: str, honest: str, folder: Path) -> None:
    a, b, c, d = (str(folder / f"{name}.tally.json") for name in "abcd")
    for file, out in (((overconfident,), a), ((honest,), b), ((overconfident, honest), d)):
        assert run("tally", *file, "--out", out).exit_code == 0
    assert run("merge", a, b, "--out", c).exit_code == 0
    merged, total = (json.loads(run("measure", x, "--interval", "none", "--json", "-").stdout) for x in (c, d))
    assert merged["n"] == total["n"] == 800
    assert merged["value"] == pytest.approx(total["value"], abs=1e-12)


def test_a_tally_keeps_the_lens_that_was_named(run: Run, overconfident: str, folder: Path) -> None:
    out = str(folder / "g.tally.json")
    assert run("tally", overconfident, "--out", out, "--lens", "groups:[[0,1],[2]]", "--grid", 5).exit_code == 0
    assert run("measure", out, "--lens", "groups:[[0,1],[2]]", "--interval", "none").exit_code == 0


def test_a_pattern_and_several_files_are_read_as_one(run: Run, overconfident: str, honest: str, folder: Path) -> None:
    for name, path in (("x1", overconfident), ("x2", honest)):
        (folder / f"{name}.csv").write_bytes(Path(path).read_bytes())
    ways = ([folder / "x*.csv"], [folder / "x1.csv", folder / "x2.csv"])
    lines = {run("measure", *way, "--interval", "none").stdout for way in ways}
    assert len(lines) == 1
    assert "n=800" in lines.pop()


def test_columns_are_named_one_by_one_or_by_pattern(run: Run, overconfident: str) -> None:
    ways = (["--probs", "p_*"], ["--probs", "p_0, p_1,p_2"], ["--classes", "0,1,2"], [])
    assert len({run("measure", overconfident, "--interval", "none", *way).stdout for way in ways}) == 1


def test_list_names_the_members_of_the_tables(run: Run) -> None:
    from trueodds.estimators import ESTIMATORS

    lines = run("list", "estimators").stdout.splitlines()
    assert tuple(line.split()[0] for line in lines) == ESTIMATORS.names()
    assert all(len(line.split()) > 2 and len(line) <= 100 for line in lines)
    (ece,) = (line for line in lines if line.startswith("ece "))
    assert ece.split(maxsplit=1)[1].startswith("Expected calibration error (ECE): mean distance")
    everything = run("list").stdout
    assert all(name in everything for name in (*ESTIMATORS.names(), "temperature", "reliability", "consistency", "tv"))


def test_listed_words_are_the_ones_that_the_problem_knows() -> None:
    for name in names_of_family("lenses"):
        assert lens_by_name.as_lens(name).name == name
    for name in names_of_family("partitions"):
        assert partition_by_name.as_partition(name, bins=[0, 0.5, 1] if name == "edges" else None) is not None
    assert names_of_family("lenses") == lens_by_name.LENS_NAMES
    assert set(names_of_family("distances")) == {*distance.DISTANCES, "lp:3"}
    for name in names_of_family("distances"):
        distance.as_distance(name)


def overconfident_answers(path: Path, percent: bool) -> Path:
    """A confidence that is too high by .2, of 120 answers."""
    lines = ["id,c,ok"]
    for i in range(120):
        confidence = 0.6 + 0.1 * (i % 4)
        right = i // 4 < 30 * (confidence - 0.2)
        lines.append(
            f"q{i},{100 * confidence:.0f},{'yes' if right else 'no'}"
            if percent
            else f"q{i},{confidence:.1f},{int(right)}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("percent", [False, True])
def test_a_fixed_confidence_is_applied_without_knowing_what_was_correct(run: Run, folder: Path, percent: bool) -> None:
    file, cal, out = overconfident_answers(folder / "c.csv", percent), folder / "cal.json", folder / "m.csv"
    scale = ["--percent"] if percent else []
    words = ["--confidence", "c", "--correct", "ok", *scale]
    assert run("fit", file, *words, "--method", "temperature", "--out", cal).exit_code == 0
    done = run("apply", cal, file, "--confidence", "c", *scale, "--out", out)
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8").splitlines()[1].startswith("q0,")
    before, after = (
        json.loads(run("measure", path, *words, "--estimator", "log_loss", "--json", "-").stdout)["value"]
        for path in (file, out)
    )
    assert after < before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--answer", "z"], "TO601", "no outcome is read"),
        (["--samples", "z"], "TO601", "trueodds answers FILE"),
        (["--percent"], "TO601", "Add --confidence C"),
        (["--confidence", "p_cat"], "TO607", "--probs"),
    ],
)
def test_what_a_fix_is_not_applied_to_leads_to_what_it_is(
    run: Run, folder: Path, words: list[str], code: str, message: str
) -> None:
    one, cal = named(folder / "cd.csv", "cat", "dog"), folder / "cal.json"
    run("fit", one, "--method", "temperature", "--out", cal)
    done = run("apply", cal, one, *words, "--out", folder / "x.csv")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, f"error {code}")
    assert message in done.stderr
