"""Does the study of estimators measure what it says, stop and go on, and judge every member?"""

import json
import math
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

import trueodds as to
from trueodds.cli import main
from trueodds.estimators import ESTIMATORS
from trueodds_studies.common.estimator_cases import CASES, EstimatorCase, estimator_cases, population_value
from trueodds_studies.common.simulated_worlds import BINARY_WORLDS, MULTICLASS_WORLDS, VOTE_WORLDS
from trueodds_studies.common.study_result import StudyResult, align_columns
from trueodds_studies.coverage import Cell, Plan, coverage, measure_cell

SMALL = Plan(sets=3, rows=(60,), resamples=20, redraws=19)


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_every_estimator_can_be_evaluated(name):
    (case, *_) = estimator_cases(name)
    world = next(world for world in (*BINARY_WORLDS, *MULTICLASS_WORLDS, *VOTE_WORLDS) if case.fits(world))
    row = measure_cell(Cell(case, world, 60), Plan(sets=2, rows=(60,), resamples=20, redraws=19))
    assert row["rmse"] >= 0
    assert math.isfinite(row["truth"])


def test_special_cases_are_of_members():
    assert set(CASES) <= set(ESTIMATORS.names())


@pytest.mark.slow
def test_a_row_tells_what_its_cell_gave():
    study = coverage(methods=["ece"], plan=SMALL)
    row = study.rows[0]
    values = []
    for repetition in range(SMALL.sets):
        preds = BINARY_WORLDS[0].rows(SMALL.rng(BINARY_WORLDS[0], 60, repetition), 60)
        values.append(to.measure(preds, "ece", interval=None).value)
    assert (row["estimator"], row["world"], row["n"], row["truth"]) == ("ece", "calibrated", 60, 0.0)
    assert row["bias"] == pytest.approx(sum(values) / 3)
    assert row["rmse"] == pytest.approx((sum(v * v for v in values) / 3) ** 0.5)
    assert row["rmse_of_0"] == 0
    assert row["covers"] + row["above"] + row["below"] == pytest.approx(1)


def test_the_truth_of_an_error_on_fixed_bins_is_below_the_mean_distance():
    # Vaicenavicius et al., Theorem 2: on fixed bins the error converges to a lower bound.
    ece = ESTIMATORS.make("ece", {"bins": 5})
    world = BINARY_WORLDS[2]
    assert (
        0
        < population_value(EstimatorCase("ece", target="own"), ece, world)
        < population_value(EstimatorCase("ece", target="l1"), ece, world)
    )


@pytest.mark.usefixtures("only_tables")
def test_a_stopped_study_goes_on_with_the_same_numbers(tmp_path):
    full = coverage(methods=["ks"], plan=SMALL, out=tmp_path / "whole")
    cells_file = tmp_path / "part" / "coverage.cells.jsonl"
    cells_file.parent.mkdir()
    lines = (tmp_path / "whole" / "coverage.cells.jsonl").read_text(encoding="utf-8").splitlines()
    marked = json.loads(lines[1])
    marked[1]["bias"] = 42.0  # so that it shows that this cell was not measured again
    cells_file.write_text(
        "\n".join([lines[0], json.dumps(marked), lines[2][:30]]), encoding="utf-8"
    )  # the last line was cut off
    resumed = coverage(methods=["ks"], plan=SMALL, out=cells_file.parent)
    assert resumed.rows[0]["bias"] == 42.0
    assert resumed.rows[1:] == full.rows[1:]


@pytest.mark.slow
@pytest.mark.usefixtures("only_tables")
def test_cells_of_another_plan_are_measured_again(tmp_path):
    coverage(methods=["ks"], plan=SMALL, out=tmp_path)
    other = Plan(sets=2, rows=(60,), resamples=20, redraws=19)
    assert coverage(methods=["ks"], plan=other, out=tmp_path).rows == coverage(methods=["ks"], plan=other).rows


@pytest.mark.slow
def test_the_command_line_runs_it_and_keeps_table_and_picture(tmp_path, monkeypatch):
    monkeypatch.setattr("trueodds_studies.coverage.QUICK", SMALL)
    ran = CliRunner().invoke(
        main, ["study", "coverage", "--quick", "--method", "ece", "--out", str(tmp_path)], standalone_mode=False
    )
    assert "cover the truth" in ran.output
    assert {"coverage.csv", "coverage.md", "coverage.svg"} <= {file.name for file in tmp_path.iterdir()}
    assert ET.parse(tmp_path / "coverage.svg").getroot().tag.endswith("svg")


def test_an_unknown_study_or_member_is_refused():
    with pytest.raises(to.InputError) as refusal:
        coverage(methods=["eec"], plan=SMALL)
    assert refusal.value.code == "TO201"


def test_a_table_lines_up():
    text = align_columns([{"name": "a", "x": 1.5}, {"name": "long", "x": None}], ["name", "x"])
    assert text.splitlines() == ["name    x", "a     1.5", "long"]
    assert StudyResult("f", "Said.", ({"a": 1.0},), {}).markdown() == "| a |\n|---|\n| 1 |\n"
