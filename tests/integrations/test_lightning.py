"""Does the Lightning callback log the calibration of the validation rows, and leave training as it is?"""

from __future__ import annotations

import csv
import gc
import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.integrations.epoch_summary import RowCollector, summarize_epoch

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")

from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402 - after the library
from lightning.pytorch.loggers import CSVLogger  # noqa: E402

from trueodds.integrations.lightning import CalibrationCallback  # noqa: E402

# Lightning warns of its own use of torch, and advises more workers; nothing here goes by either.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*have no logger configured"),
    pytest.mark.filterwarnings("ignore:.*Checkpoint directory"),
]


class Net(lightning.LightningModule):
    """A small network with dropout, whose validation step returns what `self.returned` makes of logits and labels."""

    def __init__(self, returned: Any = None, columns: int = 3) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, columns)
        )
        self.returned = returned or (lambda z, y: {"logits": z, "target": y})
        self.collected: list[Any] = []  # logits and labels of each epoch

    def training_step(self, batch: Any, _: int) -> Any:
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def on_validation_epoch_start(self) -> None:
        self.collected.append(([], []))

    def validation_step(self, batch: Any, _: int, dataloader_idx: int = 0) -> Any:
        logits = self.net(batch[0])
        self.collected[-1][0].append(logits.numpy())
        self.collected[-1][1].append(batch[1].numpy())
        return self.returned(logits, batch[1])

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), 0.03)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(n: int, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=generator)
    return torch.utils.data.TensorDataset(x, (x[:, :3] + torch.randn(n, 3, generator=generator)).argmax(1))


def trainer(callbacks: list[Any], epochs: int = 3, **settings: Any) -> Any:
    names = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    settings = dict.fromkeys(names, False) | {"accelerator": "cpu", "log_every_n_steps": 1} | settings
    return lightning.Trainer(max_epochs=epochs, callbacks=callbacks, **settings)


def loaders(n_validation: int = 150) -> tuple[Any, Any]:
    load = torch.utils.data.DataLoader
    return load(rows(128, 1), 32, shuffle=True), load(rows(n_validation, 2), 40)


def fit(callbacks: list[Any], net: Any = None, **settings: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    net = net or Net()
    run = trainer(callbacks, **settings)
    run.fit(net, *loaders())
    return net, run


def predictions(net: Any, epoch: int = -1) -> to.Predictions:
    logits, labels = (np.concatenate(parts) for parts in net.collected[epoch])
    return to.Predictions.from_logits(labels, logits)


def test_logged_values_are_those_of_the_public_functions() -> None:
    torch.manual_seed(0)
    callback = CalibrationCallback(logits=True)
    net, run = fit([callback], Net())
    preds = predictions(net)
    logged = {name: float(value) for name, value in run.callback_metrics.items()}
    assert logged == summarize_epoch(preds).to_dict("calibration/")
    assert logged["calibration/error"] == to.measure(preds).value
    assert logged["calibration/pvalue"] == to.test(preds, "consistency", resamples=199).pvalue
    assert logged["calibration/log_loss"] == to.measure(preds, "log_loss").value
    assert logged["calibration/n"] == 150
    assert callback.summary() == summarize_epoch(preds)


def test_every_epoch_is_logged(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path)
    net, _ = fit([CalibrationCallback(logits=True, estimator="brier", lens="class:1", prefix="val_")], logger=logger)
    with open(Path(logger.log_dir) / "metrics.csv", encoding="utf-8") as file:
        table = [row for row in csv.DictReader(file) if row["val_error"]]
    assert len(net.collected) == 4  # with the sanity check
    expected = [to.measure(predictions(net, epoch), "brier", lens="class:1").value for epoch in (1, 2, 3)]
    assert [float(row["val_error"]) for row in table] == expected


def test_the_sanity_check_before_training_is_not_summarized() -> None:
    callback, summaries = CalibrationCallback(logits=True), []

    class Record(lightning.Callback):
        def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
            summaries.append(callback.summary())

    fit([callback, Record()], epochs=1)
    assert summaries == [None]
    assert callback.summary() is not None


def test_early_stopping_and_checkpoints_monitor_the_refinement(tmp_path: Path) -> None:
    name = "calibration/refinement"
    stopping = EarlyStopping(name, mode="min", patience=1, min_delta=10.0)
    checkpoint = ModelCheckpoint(tmp_path, "best", name, save_top_k=1, mode="min")
    net, run = fit([CalibrationCallback(logits=True), stopping, checkpoint], epochs=6, enable_checkpointing=True)
    assert run.current_epoch == 2  # no gain of 10, so that the second epoch is the last one
    losses = [summarize_epoch(predictions(net, epoch)).refinement for epoch in (1, 2)]
    assert float(stopping.best_score) == losses[0]
    assert float(checkpoint.best_model_score) == min(losses)


def test_training_is_unchanged() -> None:
    states = []
    for callbacks in ([], [CalibrationCallback(logits=True)]):
        net, _ = fit(callbacks)
        states.append((net.state_dict(), torch.random.get_rng_state(), np.random.get_state()[1]))  # noqa: NPY002
    for name, weights in states[0][0].items():
        assert torch.equal(weights, states[1][0][name])
    assert torch.equal(states[0][1], states[1][1])
    assert np.array_equal(states[0][2], states[1][2])


def count_rows() -> int:
    """The number of objects that hold rows."""
    gc.collect()
    return sum(type(item) in (RowCollector, to.Predictions) for item in gc.get_objects())


def test_no_rows_are_kept_after_the_epoch() -> None:
    callback, before = CalibrationCallback(logits=True), count_rows()
    _, run = fit([callback], epochs=2)
    assert run.callback_metrics["calibration/n"] == 150
    assert callback._collectors == {}
    assert count_rows() == before


def test_only_every_second_epoch_is_summarized_and_all_validations_outside_of_training() -> None:
    callback = CalibrationCallback(logits=True, every=2)
    net, run = fit([callback], epochs=4)
    assert callback.summary() == summarize_epoch(predictions(net, 3))  # epochs 0 and 2, after the sanity check
    (values,) = run.validate(net, loaders()[1], verbose=False)
    assert values["calibration/error"] == to.measure(predictions(net)).value


def test_each_of_several_loaders_has_its_values() -> None:
    train, validation = loaders()
    other = torch.utils.data.DataLoader(rows(70, 3), 40)
    torch.manual_seed(0)
    net, run = Net(), trainer([CalibrationCallback(logits=True)], epochs=1)
    run.fit(net, train, [validation, other])
    assert run.callback_metrics["calibration/n/dataloader_idx_0"] == 150
    assert run.callback_metrics["calibration/n/dataloader_idx_1"] == 70
    logits, labels = net.collected[-1]
    expected = to.measure(to.Predictions.from_logits(np.concatenate(labels[4:]), np.concatenate(logits[4:]))).value
    assert float(run.callback_metrics["calibration/error/dataloader_idx_1"]) == expected


@pytest.mark.parametrize(
    ("returned", "settings"),
    [
        (lambda z, y: {"probs": z.double().softmax(1), "labels": y}, {"logits": False}),
        (lambda z, y: z, {"logits": True, "output": lambda module, outputs, batch: (outputs, batch[1])}),
        (
            lambda z, y: None,
            {"logits": True, "output": lambda module, outputs, batch: (module.collected[-1][0][-1], batch[1])},
        ),
    ],
    ids=["probabilities", "output", "nothing returned"],
)
def test_scores_come_from_a_dict_or_a_function(returned: Any, settings: dict[str, Any]) -> None:
    net, run = fit([CalibrationCallback(**settings)], Net(returned), epochs=1)
    expected = to.measure(predictions(net)).value
    np.testing.assert_allclose(float(run.callback_metrics["calibration/error"]), expected, rtol=1e-12)


def test_bfloat16_logits_are_exact() -> None:
    net, run = fit(
        [CalibrationCallback(logits=True)], Net(lambda z, y: {"logits": z.bfloat16(), "target": y}), epochs=1
    )
    logits, labels = (np.concatenate(parts) for parts in net.collected[-1])
    rounded = torch.from_numpy(logits).bfloat16().double().numpy()
    assert (
        float(run.callback_metrics["calibration/error"])
        == to.measure(to.Predictions.from_logits(labels, rounded)).value
    )


@pytest.mark.parametrize(
    ("returned", "code", "got", "fix"),
    [
        (lambda z, y: z.mean(), "TO351", "Tensor", "'logits': …"),
        (lambda z, y: None, "TO351", "NoneType", "output="),
        (lambda z, y: {"logits": z, "y": y}, "TO351", "'logits', 'y'", "'labels'"),
        (lambda z, y: {"probs": z, "target": y}, "TO351", "'probs', 'target'", "'logits': …"),
        (lambda z, y: {"logits": z.clone().requires_grad_(), "target": y}, "TO340", "(40, 3)", ".detach()"),
        (lambda z, y: {"logits": z, "target": y[:-1]}, "TO352", "(39,)", "one label per row"),
        (lambda z, y: {"logits": z[:, :, None], "target": y}, "TO352", "(40, 3, 1)", "flatten"),
        (lambda z, y: {"logits": z * torch.nan, "target": y}, "TO103", "nan in row 0", "Fill"),
        (lambda z, y: {"logits": z, "target": y + 1}, "TO105", "3 in row", "subtract 1"),
        (lambda z, y: {"logits": z, "target": y + 0.5}, "TO106", "in row 0", "classes=[0.5, 1.5, 2.5]"),
    ],
)  # fmt: skip
def test_bad_output_is_refused(returned: Any, code: str, got: str, fix: str) -> None:
    inference = {"inference_mode": False} if code == "TO340" else {}
    with refused(code, got, fix=fix):
        fit([CalibrationCallback(logits=True)], Net(returned), epochs=1, num_sanity_val_steps=0, **inference)


def test_logits_passed_as_probabilities_are_refused() -> None:
    with refused("TO102", fix="pass logits=True"):
        fit([CalibrationCallback(logits=False)], Net(lambda z, y: {"probs": z, "target": y}), epochs=1)


def test_a_function_that_returns_no_pair_is_refused() -> None:
    with refused("TO351", fix="Return two tensors"):
        fit([CalibrationCallback(logits=True, output=lambda module, outputs, batch: outputs)], epochs=1)
    with refused("TO351", "logits"):
        CalibrationCallback(logits=True, output="logits")  # type: ignore[arg-type]


def test_settings_are_refused_before_training() -> None:
    with refused("TO201", fix="ece"):
        CalibrationCallback(logits=True, estimator="eec")
    with refused("TO202"):
        CalibrationCallback(logits=True, bins=10)  # type: ignore[call-arg]
    with refused("TO203"):
        CalibrationCallback(logits=True, every=0)


def test_the_error_without_lightning_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "trueodds.integrations.lightning")
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with refused("TO350", "pytorch_lightning", fix=".[lightning]"):
        importlib.import_module("trueodds.integrations.lightning")


def test_the_package_pytorch_lightning_takes_the_callback() -> None:
    classic = pytest.importorskip("pytorch_lightning")

    class ClassicNet(classic.LightningModule):
        training_step, validation_step = Net.training_step, Net.validation_step
        on_validation_epoch_start, configure_optimizers = Net.on_validation_epoch_start, Net.configure_optimizers

        def __init__(self) -> None:
            super().__init__()
            self.net, self.collected = torch.nn.Linear(5, 3), []
            self.returned = lambda z, y: {"logits": z, "target": y}

    torch.manual_seed(0)
    net = ClassicNet()
    run = classic.Trainer(
        max_epochs=1, accelerator="cpu", callbacks=[CalibrationCallback(logits=True)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    run.fit(net, *loaders())
    assert float(run.callback_metrics["calibration/error"]) == to.measure(predictions(net)).value


DISTRIBUTED = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from tests.integrations.test_lightning import Net, loaders, trainer
from trueodds.integrations.lightning import CalibrationCallback

torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
run = trainer([CalibrationCallback(logits=True)], epochs=1, devices=2, strategy="ddp", num_sanity_val_steps=0)
run.fit(net, *loaders())
values = {name: float(value) for name, value in run.callback_metrics.items()}
n_own = sum(map(len, net.collected[-1][1]))
torch.save({"values": values, "n_own": n_own, "state": net.state_dict()}, f"{sys.argv[1]}/{run.global_rank}.pt")
"""


def test_two_processes_log_the_values_of_all_rows(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "PYTHONPATH": path, "NODE_RANK": "0"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DISTRIBUTED, str(tmp_path)], env=environment | {"LOCAL_RANK": rank},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        encoding="utf-8")
        for rank in "01"
    ]  # fmt: skip
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended[0][1][-2000:] + ended[1][1][-2000:]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert (first["n_own"], second["n_own"]) == (75, 75)  # of 150
    assert first["values"] == second["values"]
    net = Net()
    net.load_state_dict(first["state"])
    net.eval()
    x, y = rows(150, 2).tensors
    with torch.no_grad():
        expected = summarize_epoch(to.Predictions.from_logits(y.numpy(), net.net(x).numpy())).to_dict("calibration/")
    assert first["values"].keys() == expected.keys()
    assert first["values"]["calibration/n"] == 150
    for name in ("accuracy", "log_loss", "error", "temperature", "refinement"):
        value = first["values"][f"calibration/{name}"]
        np.testing.assert_allclose(value, expected[f"calibration/{name}"], rtol=1e-5, err_msg=name)
