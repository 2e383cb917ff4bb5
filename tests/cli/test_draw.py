"""trueodds draw: several models, layers left out, and a tetrahedron that turns."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds.cli import main
from trueodds.cli.draw import _ROTATABLE_DIAGRAMS
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams.base import Diagram


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 300)
    y = (P.cumsum(axis=1) < rng.random(300)[:, None]).sum(axis=1)
    sharp = P**2 / (P**2).sum(axis=1, keepdims=True)
    for name, probs in (("before", sharp), ("after", P)):
        lines = [
            "label,p_0,p_1,p_2,p_3",
            *(",".join([str(k), *map(repr, map(float, p))]) for k, p in zip(y, probs, strict=True)),
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def ran(*words):
    return CliRunner().invoke(main, words)


def test_each_file_is_a_model_called_as_the_file_is(workdir):
    result = ran("draw", "before.csv", "after.csv", "--each", "--diagram", "comparison", "--out", "c.json")
    assert result.exit_code == 0, result.output
    assert set(json.loads((workdir / "c.json").read_text(encoding="utf-8"))["table"]["model"]) == {"before", "after"}
    assert ran("draw", "before.csv", "after.csv", "--diagram", "comparison", "--out", "d.json").exit_code == 0
    assert (workdir / "d.json").read_text(encoding="utf-8") == (workdir / "c.json").read_text(encoding="utf-8")


def test_without_each_several_files_are_one_table(workdir):
    result = ran("draw", "before.csv", "after.csv", "--out", "r.json")
    assert result.exit_code == 0, result.output
    assert json.loads((workdir / "r.json").read_text(encoding="utf-8"))["panels"]["n"] == [600]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("llo_posterior --lens class:1 --set resolution=5", {"resolution": 5}),
        ("recalibration_lines --lens class:1 --set posteriors=[0.9]", {"posteriors": [0.9]}),
        ("mcllo_parameters --level 0.9", {"level": 0.9}),
    ],
)
def test_a_diagram_of_parameters_is_a_picture_with_its_settings(workdir, words, settings):
    for name in ("a.png", "a.json"):
        result = ran("draw", "after.csv", "--diagram", *words.split(), "--out", name)
        assert result.exit_code == 0, result.output
    assert (workdir / "a.png").read_bytes().startswith(b"\x89PNG")
    written = json.loads((workdir / "a.json").read_text(encoding="utf-8"))["settings"]
    assert settings.items() <= written.items()


def test_two_models_of_one_name_are_refused(workdir):
    (workdir / "old").mkdir()
    (workdir / "old" / "after.csv").write_text((workdir / "after.csv").read_text(encoding="utf-8"), encoding="utf-8")
    result = ran("draw", "after.csv", "old/after.csv", "--each", "--diagram", "comparison", "--out", "c.json")
    assert isinstance(result.exception, (InputError, SystemExit))
    assert result.exit_code == 2
    assert "TO603" in result.output


@pytest.mark.slow
def test_a_layer_is_left_out_of_the_picture(workdir):
    assert ran("draw", "after.csv", "--out", "a.svg").exit_code == 0
    assert ran("draw", "after.csv", "--without", "strip", "--out", "b.svg").exit_code == 0
    assert len((workdir / "b.svg").read_text(encoding="utf-8")) < len((workdir / "a.svg").read_text(encoding="utf-8"))
    assert "TO203" in ran("draw", "after.csv", "--without", "clouds", "--out", "b.svg").output


@pytest.mark.slow
def test_title_size_and_resolution_are_options(workdir):
    from matplotlib.image import imread

    assert ran("draw", "after.csv", "--figsize", "4,3.5", "--dpi", "100", "--out", "a.png").exit_code == 0
    assert imread(workdir / "a.png").shape[:2] == (350, 400)
    headline = 'aria-label="Does confidence match accuracy?'
    for words, name in ((("--title", "Forest & co"), 'aria-label="Forest &amp; co '), ((), headline)):
        assert ran("draw", "after.csv", *words, "--out", "b.svg").exit_code == 0
        assert name in (workdir / "b.svg").read_text(encoding="utf-8")
    titled = len((workdir / "b.svg").read_text(encoding="utf-8"))
    assert ran("draw", "after.csv", "--no-title", "--out", "b.svg").exit_code == 0
    assert len((workdir / "b.svg").read_text(encoding="utf-8")) < titled
    assert ran("draw", "after.csv", "--diagram", "tetrahedron", "--title", "Four", "--out", "t.html").exit_code == 0
    assert "<h1>Four</h1>" in (workdir / "t.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--figsize 5", "TO203", "For instance --figsize 5,4."),
        ("--figsize 5x4", "TO203", "figsize must be a width and a height"),
        ("--figsize 0,4", "TO203", "from 1.5 to 50 inches"),
        ("--dpi many", "TO203", "For instance --dpi 300."),
        ("--dpi -3", "TO203", "dpi must be a number from 10 to 1200"),
        ("--title A --no-title", "TO603", "--title and --no-title"),
    ],
)
def test_a_look_that_no_picture_has_is_refused(workdir, words, code, message):
    result = ran("draw", "after.csv", *words.split(), "--out", "a.png")
    assert result.exit_code == 2
    assert code in result.output
    assert message in result.output
    assert not (workdir / "a.png").exists()


@pytest.mark.parametrize("words", [("--title", "A"), ("--no-title",), ("--figsize", "4,4"), ("--dpi", "100")])
def test_numbers_have_no_look(workdir, words):
    assert "TO603" in ran("draw", "after.csv", *words, "--out", "a.csv").output
    page = ran("draw", "after.csv", "--diagram", "tetrahedron", *words, "--out", "t.html")
    assert ("TO603" in page.output) is (words[0] in ("--figsize", "--dpi"))


def test_a_tetrahedron_is_written_as_a_page(workdir):
    assert ran("draw", "after.csv", "--diagram", "tetrahedron", "--out", "t.html").exit_code == 0
    assert 'data-turning="tetrahedron"' in (workdir / "t.html").read_text(encoding="utf-8")


def test_a_page_of_another_diagram_is_refused_before_the_file_is_read(workdir):
    result = ran("draw", "no_such_file.csv", "--out", "r.html")
    assert result.exit_code == 2
    assert "TO606" in result.output
    assert "fix: Use one of .svg .png .pdf .csv .json." in result.output
    assert "TO201" in ran("draw", "after.csv", "--diagram", "tetrahedrn", "--out", "r.html").output


def test_pages_are_written_of_those_diagrams_that_have_one():
    for name in DIAGRAMS.names():
        DIAGRAMS.load(name)
    paged = {diagram_class.__module__ for diagram_class in subclasses(Diagram) if hasattr(diagram_class, "to_html")}
    assert paged == {"trueodds.diagrams.tetrahedron"}
    assert _ROTATABLE_DIAGRAMS == ("tetrahedron",)


def subclasses(kind):
    return {one for subclass in kind.__subclasses__() for one in (subclass, *subclasses(subclass))}


@pytest.mark.slow
def test_the_state_of_a_monitor_is_drawn(workdir):
    cohort = np.repeat([1, 2, 3], 20)
    preds = to.Predictions(np.tile([0, 1], 30), np.tile([0.2, 0.7], 30))
    monitor = to.Monitor(0, "integer").update(preds, cohort, 3)
    monitor.report()
    monitor.save("monitor.json")
    result = ran("draw", "monitor.json", "--diagram", "monitor", "--level", "0.9", "--out", "m.json")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("No alarm: ")
    drawn = json.loads((workdir / "m.json").read_text(encoding="utf-8"))
    assert drawn["table"]["part"] == ["judged", "judged", "open"]
    assert drawn["settings"]["level"] == 0.9
    assert ran("draw", "monitor.json", "--diagram", "monitor", "--out", "m.svg").exit_code == 0
    for words, code in (
        (("monitor.json", "--label", "y"), "TO603"),
        (("monitor.json", "--each"), "TO603"),
        (("monitor.json", "monitor.json"), "TO603"),
        (("after.csv",), "TO905"),
        (("monitor.json", "--lens", "positive"), "TO203"),
    ):
        result = ran("draw", *words, "--diagram", "monitor", "--out", "x.svg")
        assert result.exit_code == 2
        assert f"error {code}" in result.output


def renamed(workdir, *paths):
    for path in paths:
        (workdir / path).parent.mkdir(exist_ok=True)
        (workdir / path).write_text((workdir / "after.csv").read_text(encoding="utf-8"), encoding="utf-8")
    return paths


def test_a_dot_in_a_name_is_no_ending(workdir):
    files = renamed(workdir, "run.1.csv", "run.2.csv")
    assert ran("draw", *files, "--diagram", "comparison", "--out", "c.json").exit_code == 0
    assert set(json.loads((workdir / "c.json").read_text(encoding="utf-8"))["table"]["model"]) == {"run.1", "run.2"}
    files = renamed(workdir, "0.5.csv", "0.7.csv")
    assert ran("draw", *files, "--diagram", "training", "--set", "resamples=99", "--out", "t.json").exit_code == 0
    assert json.loads((workdir / "t.json").read_text(encoding="utf-8"))["table"]["epoch"] == [0.5, 0.7]


def test_a_tally_is_called_as_its_file_is_without_both_endings(workdir):
    for name in ("before", "after"):
        assert ran("tally", f"{name}.csv", "--out", f"{name}.tally.json").exit_code == 0
    result = ran("draw", "before.tally.json", "after.tally.json", "--diagram", "comparison", "--out", "c.json")
    assert result.exit_code == 0, result.output
    assert set(json.loads((workdir / "c.json").read_text(encoding="utf-8"))["table"]["model"]) == {"before", "after"}


def test_epochs_in_a_folder_for_each_run_are_runs(workdir):
    files = renamed(workdir, "a/1.csv", "a/2.csv", "b/1.csv", "b/2.csv")
    result = ran("draw", *files, "--diagram", "training", "--set", "resamples=99", "--out", "t.json")
    assert result.exit_code == 0, result.output
    table = json.loads((workdir / "t.json").read_text(encoding="utf-8"))["table"]
    assert list(zip(table["run"], table["epoch"], strict=True)) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    # In one folder there are no runs.
    result = ran("draw", "a/1.csv", "a/2.csv", "--diagram", "training", "--set", "resamples=99", "--out", "t.json")
    assert set(json.loads((workdir / "t.json").read_text(encoding="utf-8"))["table"]["run"]) == {""}


def test_a_setting_that_is_no_option_is_passed_with_set(workdir):
    result = ran("test", "after.csv", "--test", "mcllo", "--baseline", "1")
    assert result.exit_code == 2
    assert "--set baseline=1" in result.output
    assert ran("test", "after.csv", "--test", "mcllo", "--set", "baseline=1").exit_code == 0


def test_groups_are_drawn_of_the_named_columns_and_by_no_other_diagram(workdir):
    header, *lines = (workdir / "after.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{line},{'ab'[i % 2]}" for i, line in enumerate(lines)]
    (workdir / "sites.csv").write_text("\n".join([f"{header},site", *lines]) + "\n", encoding="utf-8")
    draw = ("draw", "sites.csv", "--out", "g.json", "--diagram")
    result = ran(*draw, "groups", "--group", "site", "--resamples", "99")
    assert result.exit_code == 0, result.output
    assert json.loads((workdir / "g.json").read_text(encoding="utf-8"))["table"]["value"] == ["a", "b", "all rows"]
    for words, code in ((("groups",), "TO601"), (("corp", "--group", "site"), "TO603")):
        refusal = ran(*draw, *words)
        assert refusal.exit_code == 2
        assert code in refusal.output
