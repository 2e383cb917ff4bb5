"""Does the study of network factors build, train, pair and describe its networks correctly?"""

import json
import xml.etree.ElementTree as ET
from functools import cache

import pytest

from tests import reference
from tests.data.refused import refused
from tests.studies.made_mnist import write_made_mnist
from trueodds_studies.common import network_training
from trueodds_studies.common.mnist import load_mnist_split
from trueodds_studies.network_factors import factor_effects
from trueodds_studies.network_factors.network_designs import BASELINE, LEVELS, build_convnet, design_at, list_designs
from trueodds_studies.network_factors.study import Cell, Plan, measure_cell, network_factors

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

TINY = Plan(trainings=2, epochs=3, evaluate_every=2, train_rows=75, validation_rows=50, test_rows=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("data")
    write_made_mnist(where)
    return where


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def study(folder, out):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEODDS_THREADS", "1")  # many cells, each too short for a worker process
        return network_factors(data=folder, plan=TINY, out=out)


# The networks


def test_one_factor_at_a_time_differs_from_the_baseline():
    designs = list_designs()
    assert len(designs) == len(set(designs)) == 1 + sum(len(levels) - 1 for levels in LEVELS.values())
    for factor, levels in LEVELS.items():
        assert list(levels) == sorted(levels)
        assert design_at(factor, getattr(BASELINE, factor)) == BASELINE
    differing = [sum(getattr(design, factor) != getattr(BASELINE, factor) for factor in LEVELS) for design in designs]
    assert differing == [0] + [1] * (len(designs) - 1)


@pytest.mark.parametrize("design", list_designs(), ids=str)
def test_a_network_has_the_depth_width_and_normalization_of_its_design(design):
    network = build_convnet(design.depth, design.width, design.batch_norm)
    convolutions = [layer for layer in network if isinstance(layer, torch.nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [design.width] * design.depth
    norms = [layer for layer in network if isinstance(layer, torch.nn.BatchNorm2d)]
    assert len(norms) == design.depth * design.batch_norm
    network.eval()
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_weight_decay_shrinks_weights_and_drops_slow_the_training(folder):
    from trueodds_studies.common.network_training import TrainingSettings, build_network, train_epochs

    rows = load_mnist_split(str(folder), 200, 50, 50, seed=0).train

    def norms(**settings):
        network = build_network(lambda: build_convnet(2, 8, True), 0)
        training_settings = TrainingSettings(4, 50, "sgd", 0.05, **settings)
        return [
            torch.cat([weights.detach().flatten() for weights in network.parameters()])
            for _ in train_epochs(network, rows, torch.nn.functional.cross_entropy, training_settings, 0)
        ]

    assert norms(weight_decay=0.1)[-1].norm() < norms()[-1].norm()
    free, slowed = norms(), norms(drops=(2,))
    torch.testing.assert_close(free[1], slowed[1])
    assert (slowed[3] - slowed[1]).norm() < 0.5 * (free[3] - free[1]).norm()


# The effects


def made_runs(ece, loss_after=0.1):
    """Two trainings of each design with the ECE of a function, and a loss that rises while the error falls."""

    def cell(design, seed):
        curve = [
            {"epoch": 5, "validation log loss": 0.1, "log loss": 0.1, "error": 0.05},
            {
                "epoch": 10,
                "validation log loss": 0.2,
                "log loss": 0.1 + loss_after + 0.001 * seed,
                "error": 0.04 - 0.001 * seed,
            },
        ]
        value = ece(design) + 0.1 * seed  # a part that pairing removes
        return {
            "weights": 10, "curve": curve, "training error": 0.0, "error": 0.05, "ECE": value, "noise floor": 0.002,
            "overconfidence": -value, "temperature": 1.2, "log loss": 0.2, "refinement": 0.15,
        }  # fmt: skip

    return {design: [cell(design, seed) for seed in (0, 1)] for design in list_designs()}


def test_effects_are_paired_by_seed():
    runs = made_runs(lambda design: 0.01 * design.depth)
    assert factor_effects.level_differences(runs, "depth", 2, 8, "ECE") == pytest.approx([0.06, 0.06])
    table = {(row["factor"], row["from"], row["to"]): row for row in factor_effects.effect_table(runs)}
    assert table["depth", "2", "8"]["ECE"].startswith("+0.0600 [0.06")
    assert table["width", "8", "64"]["ECE"] == "+0.0000 [0.0000, 0.0000]"
    assert table["batch normalization", "no", "yes"]["excess log loss"].startswith("+0.0000")
    assert len(table) == 3 + 4 + 1 + 4


def test_statements_are_held_opposite_or_undecided_by_their_intervals():
    runs = made_runs(lambda design: 0.01 * design.depth - 0.001 * design.width + 0.1 * (design.weight_decay == 0))
    table = {row["statement"]: row for row in factor_effects.statement_table(runs)}
    assert {text: row["by ECE"] for text, row in table.items()} == {
        "ECE increases with depth": "confirmed",
        "ECE increases with width": "opposite",
        "ECE is higher with batch normalization": "undecided",
        "ECE decreases with weight decay": "confirmed",
    }
    assert table["ECE increases with depth"]["by overconfidence"] == "opposite"
    text = factor_effects.summarize(runs)
    assert "ECE increases with width: opposite (-0.0560 [-0.0560, -0.0560] from 8 to 64)" in text
    assert text.endswith("increases significantly in 10 of 10 networks, and in 10 of them the error decreases.")


def test_a_loss_that_falls_to_the_end_is_no_overfitting():
    row = factor_effects.overfit_table(made_runs(lambda design: 0.0, loss_after=-0.05))[0]
    assert (row["log loss increases"], row["error decreases"]) == ("opposite", "confirmed")


# The study


def test_the_study_has_a_row_for_each_network(study, out):
    assert [row["network"] for row in study.rows] == [str(design) for design in list_designs()]
    tables = {table.name: table.rows for table in study.also}
    assert len(tables["network_factors.overfit"]) == len(study.rows)
    assert ET.parse(out / "network_factors.svg").getroot().tag.endswith("svg")
    cells = [
        json.loads(line)[1]
        for line in (out / "network_factors.cells.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    ]
    assert [row["epoch"] for row in cells[0]["curve"]] == [2, 3]
    for cell in cells:
        assert cell["curve"][-1]["error"] == cell["error"]
        assert cell["curve"][-1]["log loss"] == cell["log loss"]


@pytest.mark.usefixtures("only_tables")
def test_an_interrupted_study_continues_with_equal_results(study, folder, out, monkeypatch):
    calls = []
    monkeypatch.setenv("TRUEODDS_THREADS", "1")
    monkeypatch.setattr(
        "trueodds_studies.network_factors.study.measure_cell",
        lambda cell, plan: calls.append(cell.number) or measure_cell(cell, plan),
    )
    path = out / "network_factors.cells.jsonl"
    path.write_text("\n".join(path.read_text(encoding="utf-8").splitlines()[:-1]) + "\n", encoding="utf-8")
    resumed = network_factors(data=folder, plan=TINY, out=out)
    assert calls == [1]
    assert resumed.to_dict() == study.to_dict()


def test_without_pytorch_the_study_names_the_installation(monkeypatch, folder):
    monkeypatch.setattr(network_training, "find_spec", lambda name: None)
    with refused("TO806", "no torch", fix=".[torch]"):
        network_factors(data=folder, plan=TINY)


@pytest.mark.reference
@pytest.mark.usefixtures("only_tables")
def test_the_quick_study_runs_on_mnist(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEODDS_THREADS", "1")
    file, wide = reference.path("data/mnist.npz"), design_at("width", 64)

    @cache
    def train(design, number, plan):
        return measure_cell(Cell(design, number, str(file.parent)), plan)

    # Two networks are enough here; the small study trains all of them.
    monkeypatch.setattr(
        "trueodds_studies.network_factors.study.measure_cell",
        lambda cell, plan: train(wide if cell.design == wide else BASELINE, cell.number, plan),
    )
    study = network_factors(quick=True, data=file.parent, out=tmp_path)
    errors = {row["network"]: float(row["error %"].split(" ")[0]) for row in study.rows}
    assert errors[str(wide)] < 50
