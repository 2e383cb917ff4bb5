"""Does the study of training split, train, choose epochs, compare losses, and describe them correctly?"""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from tests.studies.made_mnist import write_made_mnist
from trueodds_studies.common import network_training
from trueodds_studies.common.mean_intervals import format_mean, interval_sign, mean_interval
from trueodds_studies.common.mnist import load_mnist_split
from trueodds_studies.training import epoch_tables
from trueodds_studies.training.epoch_measures import CONSISTENCY_TESTS, first_lasting_rejection, measure_calibration
from trueodds_studies.training.lenet import build_lenet, make_loss, train_lenet
from trueodds_studies.training.loss_comparison import LOSSES, STAGES, loss_table, summarize_losses
from trueodds_studies.training.study import Plan, measure_cell, training

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

TINY = Plan(
    initializations=2,
    epochs=4,
    train_rows=200,
    validation_rows=100,
    trainings=2,
    loss_epochs=2,
    loss_train_rows=100,
    loss_validation_rows=50,
    test_rows=100,
    redraws=19,
)


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
    return training(data=folder, plan=TINY, out=out)


# The data


def test_parts_are_disjoint_and_the_test_images_are_the_same_for_all_splits(folder):
    def images(part):
        return {image.tobytes() for image in part.images}

    splits = [load_mnist_split(str(folder), 300, 100, 50, seed=0, number=number) for number in (0, 1)]
    for split in splits:
        assert [len(part) for part in (split.train, split.validation, split.test)] == [300, 100, 50]
        assert len(images(split.train) | images(split.validation) | images(split.test)) == 450
        assert split.train.images.dtype == np.float32
        assert 0 <= split.train.images.min() < split.train.images.max() <= 1
    assert images(splits[0].test) == images(splits[1].test)
    assert images(splits[0].train) != images(splits[1].train)


def test_images_keep_their_labels(folder):
    file = np.load(folder / "mnist.npz")
    labels = {image.tobytes(): label for image, label in zip(file["x_train"], file["y_train"], strict=True)}
    part = load_mnist_split(str(folder), 300, 100, 50, seed=0).train
    images = np.round(part.images[:, 0] * 255).astype(np.uint8)
    assert [labels[image.tobytes()] for image in images] == part.labels.tolist()


def test_a_file_that_is_missing_small_or_no_mnist_is_refused(tmp_path, folder):
    with refused("TO802", "mnist.npz"):
        training(data=tmp_path, plan=TINY)
    with refused("TO807", "900 images, 901 requested", fix="plan"):
        load_mnist_split(str(folder), 700, 201, 10, seed=0)
    with refused("TO807", "300 images, 301 requested"):
        load_mnist_split(str(folder), 10, 10, 301, seed=0)
    X, y = np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8)
    for wrong in ({"x_train": X / 255}, {"y_test": y + 10}, {"x_test": X[:, :27]}, {"y_train": y[:2]}):
        np.savez(tmp_path / "mnist.npz", **({"x_train": X, "y_train": y, "x_test": X, "y_test": y} | wrong))
        with refused("TO803", next(iter(wrong))):
            load_mnist_split(str(tmp_path), 1, 1, 1, seed=0)


def test_without_pytorch_the_study_names_the_installation(monkeypatch, folder):
    monkeypatch.setattr(network_training, "find_spec", lambda name: None)
    with refused("TO806", "no torch", fix=".[torch]"):
        training(data=folder, plan=TINY)


# Training


def logits_after(split, loss="cross entropy", strength=0.0, seed=3, epochs=2):
    *_, predict = train_lenet(split, loss, strength, epochs, seed)
    return predict(split.test)


def test_training_depends_on_its_seed_only_and_leaves_pytorch_as_it_was(folder):
    split = load_mnist_split(str(folder), 200, 50, 50, seed=0)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first = logits_after(split)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(99)
    np.testing.assert_array_equal(first, logits_after(split))
    assert np.abs(first - logits_after(split, seed=4)).max() > 0.01


def test_lenet_has_the_size_of_the_published_one_and_learns(folder):
    assert sum(weights.numel() for weights in build_lenet().parameters()) == 61_706
    split = load_mnist_split(str(folder), 800, 50, 300, seed=0)
    right = logits_after(split, epochs=6).argmax(axis=1) == split.test.labels
    assert right.mean() > 0.6  # 91 % of the labels can be predicted


def test_each_loss_is_what_its_name_states():
    from trueodds.torch import MMCELoss, SoftBinnedECELoss

    rng = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(40, 10, generator=rng), torch.randint(0, 10, (40,), generator=rng)
    cross_entropy = torch.nn.functional.cross_entropy
    value = {(name, strength): make_loss(name, strength)(logits, labels) for name in LOSSES for strength in (0.0, 2.0)
             if (name, strength) != ("label smoothing", 2.0)}  # fmt: skip
    for name in LOSSES:
        torch.testing.assert_close(value[name, 0.0], cross_entropy(logits, labels))
    added = {"MMCE": MMCELoss(), "soft-binned ECE": SoftBinnedECELoss()}
    for name, regularizer in added.items():
        torch.testing.assert_close(value[name, 2.0] - value[name, 0.0], 2 * regularizer(logits, labels))
    smooth = make_loss("label smoothing", 0.1)(logits, labels)
    torch.testing.assert_close(smooth, cross_entropy(logits, labels, label_smoothing=0.1))
    p = logits.softmax(dim=1).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(value["focal", 2.0], -((1 - p) ** 2 * p.log()).mean())
    with pytest.raises(ValueError, match="hinge"):
        make_loss("hinge", 1.0)


# Measures


def test_a_miscalibrated_model_is_rejected_and_a_calibrated_one_is_not():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(3000, 10))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random(3000)[:, None]).sum(axis=1)
    calibrated, overconfident = (
        measure_calibration(to.Predictions.from_logits(y, factor * logits), 99, seed=0) for factor in (1.0, 1.5)
    )
    for name in CONSISTENCY_TESTS:
        assert overconfident[f"p, {name}"] == 0.01 < 0.05 < calibrated[f"p, {name}"]
        assert abs(calibrated[f"ECE, {name}"] - calibrated[f"noise floor, {name}"]) < 0.02
        assert overconfident[f"ECE, {name}"] > overconfident[f"noise floor, {name}"]


def made_run(validation, test, p=(0.5, 0.01, 0.3, 0.02), refinement=None):
    """A run of four epochs with these losses and the same p-value for all lenses."""
    keys = [f"{prefix}{key}, {name}" for prefix in ("", "scaled ", "validation ") for key in ("p", "ECE", "noise floor")
            for name in CONSISTENCY_TESTS]  # fmt: skip
    rows = [
        {
            "epoch": i + 1,
            "validation log loss": v,
            "validation refinement": r,
            "log loss": t,
            "refinement": t - 0.1,
            "accuracy": 0.9,
            "temperature": 1.5,
            **{key: q for key in keys if key.split(", ")[0].endswith("p")},
            **{key: 0.01 for key in keys if not key.split(", ")[0].endswith("p")},
        }
        for i, (v, t, q, r) in enumerate(zip(validation, test, p, refinement or validation, strict=True))
    ]
    return {"run": 1, "rows": rows}


def test_epochs_are_chosen_by_validation_and_reported_by_test():
    run = made_run([3.0, 1.0, 2.0, 4.0], [0.5, 0.9, 0.4, 0.8], refinement=[3.0, 2.0, 1.0, 4.0])
    table = {row["choice"]: row for row in epoch_tables.choice_table([run])}
    assert {name: (row["epoch"], row["log loss"]) for name, row in table.items()} == {
        "lowest log loss": (2, 0.9),
        "lowest refinement": (3, 0.4),
        "last": (4, 0.8),
    }
    text = epoch_tables.summarize([run])
    assert text.startswith("The validation log loss is lowest at epochs 2 of 4.")
    assert "rejected on the test images, of 1 initialization, in 1 (all classes, trees" in text
    assert (
        "Choosing by refinement selects epochs 3; with temperature scaling, its test log loss differs by -0.50000"
        in text
    )


def test_means_of_a_choice_are_paired_with_early_stopping():
    losses = [3.0, 1.0, 2.0, 4.0]
    runs = [made_run(losses, [1.0, x, y, x + y]) for x, y in ((0.5, 0.4), (0.7, 0.6), (0.2, 0.1))]
    table = {row["choice"]: row for row in epoch_tables.choice_means(runs)}
    assert table["last"]["difference of log loss"].startswith("+0.3667 [")
    assert table["last"]["epochs"] == "4"
    assert table["lowest log loss"]["accuracy %"] == "90.00 [90.00, 90.00]"
    assert "difference of log loss" not in table["lowest log loss"]


def test_rejection_counts_where_it_lasts_to_the_end():
    runs = [
        made_run([1.0] * 4, [1.0] * 4, p) for p in ((0.5, 0.01, 0.3, 0.02), (0.01, 0.05, 0.01, 0.01), (0.01, 0, 0, 0.6))
    ]
    assert [first_lasting_rejection(run["rows"], "groups") for run in runs] == [4, 1, None]
    row = epoch_tables.rejection_table(runs)[0]
    assert row["first epoch"] == "4, 1, –"
    assert row["all epochs"] == "9 of 12"
    assert epoch_tables.summarize_rejection(runs).startswith(
        "Initializations in which calibration is rejected at every epoch to the last: all classes, trees of at least 10"
        " rows per leaf: 2 of 3, starting at epoch"
    )


def test_means_over_trainings_have_t_intervals():
    from scipy.stats import ttest_1samp

    values = [0.3, -0.1, 0.4, 0.25]
    mean, interval = mean_interval(values)
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (mean, interval.low, interval.high) == pytest.approx((np.mean(values), expected.low, expected.high))
    assert interval_sign(interval) == 0
    assert interval_sign(mean_interval([0.3, 0.31])[1]) == 1
    assert mean_interval([0.3])[1] is None
    assert format_mean([0.3], sign=True) == "+0.3000"


def made_losses(run, loss, ece, by_rows=0):
    """Rows of one training: cross entropy with temperature scaling has log loss 0.2 and ECE 0.01."""
    rows = []
    for stage in STAGES:
        for name in ("cross entropy", "focal"):
            for scaled in (False, True):
                row = {"stage": stage, "loss": name, "temperature scaling": scaled, "strength": 1.0, "accuracy": 0.9}
                row |= {"temperature": 1.0, "epoch": 1, "log loss": 0.2, "ECE": 0.01}
                if (name, scaled) == ("focal", False):
                    row |= {"log loss": loss, "ECE": ece}
                rows.append(row | {"log loss by rows": by_rows, "ECE by rows": 0})
    return {"run": run, "rows": rows}


def test_differences_are_paired_with_cross_entropy_and_temperature():
    cells = [made_losses(1, 0.25, 0.02, by_rows=1), made_losses(2, 0.27, 0.02), made_losses(3, 0.26, 0.02, by_rows=1)]
    table = {(row["stage"], row["loss"], row["temperature scaling"]): row for row in loss_table(cells)}
    assert len(table) == 8
    focal = table["last epoch", "focal", "no"]
    assert focal["difference of log loss"].startswith("+0.0600 [")
    assert focal["difference of ECE"] == "+0.0100 [0.0100, 0.0100]"
    assert focal["log loss lower, higher"] == "0, 2"
    assert table["last epoch", "cross entropy", "yes"].get("difference of ECE") is None
    assert "higher for focal (+0.0600); not significantly different for cross entropy" in summarize_losses(cells)
    better = [made_losses(i, 0.2 - 0.01 * i, 0.02) for i in (1, 2, 3)]
    assert "At the lowest log loss, not significantly different for cross entropy" in summarize_losses(better[:2])


# The study


def test_the_study_measures_each_loss_stage_and_epoch(study, out):
    tables = {table.name: table.rows for table in study.also}
    assert [row["epoch"] for row in tables["training.epochs"]] == [1, 2, 3, 4]
    names = {(row["stage"], row["loss"], row["temperature scaling"]) for row in tables["training.losses"]}
    assert names == {(stage, loss, scaled) for stage in STAGES for loss in LOSSES for scaled in ("yes", "no")}
    assert len(study.rows) == 3 * TINY.initializations
    assert json.loads(json.dumps(study.to_dict()))["study"] == "training"
    assert ET.parse(out / "training.svg").getroot().tag.endswith("svg")
    losses = [
        json.loads(line)[1]["rows"]
        for line in (out / "training.cells.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    ][-2:]
    for rows in losses:
        chosen = {(row["stage"], row["loss"], row["temperature scaling"]): row for row in rows}
        for loss, strengths in LOSSES.items():
            assert chosen["last epoch", loss, True]["strength"] in strengths
            assert chosen["last epoch", loss, True]["epoch"] == TINY.loss_epochs
        assert "ECE by rows" not in chosen["last epoch", "cross entropy", True]


@pytest.mark.usefixtures("only_tables")
def test_an_interrupted_study_continues_with_equal_results(study, folder, out, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "trueodds_studies.training.study.measure_cell",
        lambda cell, plan: calls.append(cell.key) or measure_cell(cell, plan),
    )
    path = out / "training.cells.jsonl"
    path.write_text("\n".join(path.read_text(encoding="utf-8").splitlines()[:-1]) + "\n", encoding="utf-8")
    resumed = training(data=folder, plan=TINY, out=out)
    assert calls == ["losses | 1"]
    assert resumed.to_dict() == study.to_dict()


@pytest.mark.reference
@pytest.mark.usefixtures("only_tables")
def test_the_quick_study_runs_on_mnist(tmp_path, monkeypatch):
    @cache
    def compare_losses(cell, plan):
        return measure_cell(cell, plan)

    # One training with each loss is enough here; the small study has two that differ.
    monkeypatch.setattr(
        "trueodds_studies.training.study.measure_cell",
        lambda cell, plan: (
            measure_cell(cell, plan)
            if cell.experiment == "epochs"
            else compare_losses(replace(cell, number=0), plan) | {"run": cell.number + 1}
        ),
    )
    file = reference.path("data/mnist.npz")
    study = training(quick=True, data=file.parent, out=tmp_path)
    last = [row for row in study.rows if row["choice"] == "last"]
    assert all(row["accuracy %"] > 60 for row in last)
