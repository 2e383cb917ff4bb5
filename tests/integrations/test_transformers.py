"""Do the metrics for the Trainer of Transformers reach its logs, its best model and its early stopping?"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.integrations.epoch_summary import summarize_epoch
from trueodds.integrations.transformers import CalibrationMetrics

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")


def prediction(predictions: Any, label_ids: Any) -> Any:
    return transformers.EvalPrediction(predictions=predictions, label_ids=label_ids)


def logits_and_labels(n: int = 200, k: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k)).astype(np.float32)
    return z, (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)


# The function by itself


def test_values_are_those_of_the_public_functions() -> None:
    z, y = logits_and_labels()
    metrics = CalibrationMetrics(logits=True)
    values, preds = metrics(prediction(z, y)), to.Predictions.from_logits(y, z)
    assert values == summarize_epoch(preds).to_dict("calibration_")
    assert values["calibration_error"] == to.measure(preds).value
    assert metrics.summary() == summarize_epoch(preds)
    assert metrics(prediction((z, z + 1), y)) == values  # the first output


def test_batches_give_the_values_of_all_rows() -> None:
    z, y = logits_and_labels()
    metrics = CalibrationMetrics(logits=True)
    for _ in range(2):  # no rows are left for the second evaluation
        assert metrics(prediction(torch.from_numpy(z[:120]), torch.from_numpy(y[:120])), compute_result=False) == {}
        values = metrics(prediction(torch.from_numpy(z[120:]), torch.from_numpy(y[120:])), compute_result=True)
        assert values == CalibrationMetrics(logits=True)(prediction(z, y))
    assert metrics._collector.n_added == 0


def test_tokens_are_rows_in_clusters_and_padding_is_excluded_on_request() -> None:
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(40, 6, 3)), rng.integers(0, 3, (40, 6))
    y[:, 4:] = -100
    metrics = CalibrationMetrics(logits=True, ignore_index=-100)
    values = metrics(prediction(z, y))
    expected = to.Predictions.from_dense(y, z, axis=-1, logits=True, ignore=-100)
    assert values == summarize_epoch(expected).to_dict("calibration_")
    assert values["calibration_n"] == 160
    summary = metrics.summary()
    assert summary is not None
    assert "80 of 240 labels" in " ".join(note.text for note in summary.notes)
    with refused("TO355", "80 of 240 labels", fix="ignore_index=-100"):
        CalibrationMetrics(logits=True)(prediction(z, y))


@pytest.mark.parametrize(
    ("predictions", "labels", "code", "got"),
    [
        (np.zeros((4, 3)), None, "TO355", "no labels"),
        (np.zeros((4, 3)), (np.zeros(4), np.zeros(4)), "TO355", "2 kinds"),
        (((np.zeros((4, 3)),),), np.zeros(4), "TO355", "tuple"),
        (np.zeros((4, 3)), np.zeros(5), "TO352", "(5,)"),
        (np.zeros((4, 2, 3)), np.zeros((4, 3)), "TO352", "(4, 2, 3)"),
        (np.full((4, 3), np.nan), np.zeros(4), "TO103", "nan"),
        (np.zeros((4, 3)), np.full(4, 3), "TO105", "3 in row 0"),
        (np.zeros((4, 1)), np.full(4, 0.5), "TO106", "0.5"),
    ],
)
def test_bad_predictions_are_refused(predictions: Any, labels: Any, code: str, got: str) -> None:
    with refused(code, got):
        CalibrationMetrics(logits=True)(SimpleNamespace(predictions=predictions, label_ids=labels))


def test_logits_passed_as_probabilities_and_bad_settings_are_refused() -> None:
    z, y = logits_and_labels()
    with refused("TO102", fix="pass logits=True"):
        CalibrationMetrics(logits=False)(prediction(z, y))
    with refused("TO201"):
        CalibrationMetrics(logits=True, estimator="eec")
    with refused("TO202"):
        CalibrationMetrics(logits=True, every=2)  # type: ignore[call-arg]
    with refused("TO203"):
        CalibrationMetrics(logits=True, ignore_index=0.5)  # type: ignore[arg-type]


# In a Trainer


class Net(torch.nn.Module):
    """A small network that returns loss and logits, as models of Transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3)
        )

    def forward(self, x: Any, labels: Any = None) -> Any:
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(n: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    y = (2 * x[:, :3] + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return [{"x": torch.from_numpy(row), "labels": int(label)} for row, label in zip(x, y, strict=True)]


def train(folder: Path, metrics: Any, callbacks: list[Any] | None = None, **settings: Any) -> Any:
    transformers.set_seed(0)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to=[], use_cpu=True, eval_strategy="epoch", disable_tqdm=True, seed=0,
        num_train_epochs=3, per_device_train_batch_size=32, per_device_eval_batch_size=48, learning_rate=0.02,
        dataloader_pin_memory=False, **{"save_strategy": "no"} | settings,
    )  # fmt: skip
    trainer = transformers.Trainer(
        Net(), arguments, train_dataset=rows(96, 1), eval_dataset=rows(150, 2), compute_metrics=metrics,
        callbacks=callbacks,
    )  # fmt: skip
    trainer.train()
    return trainer


def logged(trainer: Any, name: str) -> list[float]:
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_every_evaluation_is_logged(tmp_path: Path) -> None:
    metrics = CalibrationMetrics(logits=True)
    trainer = train(tmp_path, metrics)
    assert len(logged(trainer, "eval_calibration_error")) == 3
    output = trainer.predict(rows(150, 2))
    summary = summarize_epoch(to.Predictions.from_logits(output.label_ids, output.predictions))
    for name, value in summary.to_dict("calibration_").items():
        assert logged(trainer, f"eval_{name}")[-1] == value
        assert output.metrics[f"test_{name}"] == value
    np.testing.assert_allclose(logged(trainer, "eval_loss")[-1], summary.log_loss, rtol=1e-5)


def test_evaluation_by_batches_logs_the_same(tmp_path: Path) -> None:
    first, second = (
        train(tmp_path, CalibrationMetrics(logits=True), batch_eval_metrics=by_batch) for by_batch in (False, True)
    )
    for name in summarize_epoch(to.Predictions([0, 1], [0.2, 0.7])).to_dict("eval_calibration_"):
        assert logged(first, name) == logged(second, name)


def test_the_best_model_and_early_stopping_go_by_the_refinement(tmp_path: Path) -> None:
    stopping = transformers.EarlyStoppingCallback(1, early_stopping_threshold=10.0)
    trainer = train(
        tmp_path, CalibrationMetrics(logits=True), [stopping], save_strategy="epoch", load_best_model_at_end=True,
        metric_for_best_model="calibration_refinement", greater_is_better=False,
    )  # fmt: skip
    values = logged(trainer, "eval_calibration_refinement")
    assert len(values) == 2  # no gain of 10, so that the second epoch is the last one
    assert trainer.state.best_metric == min(values)


def test_training_is_unchanged(tmp_path: Path) -> None:
    states = []
    for metrics in (None, CalibrationMetrics(logits=True)):
        trainer = train(tmp_path, metrics)
        states.append((copy.deepcopy(trainer.model.state_dict()), torch.random.get_rng_state()))
    for name, weights in states[0][0].items():
        assert torch.equal(weights, states[1][0][name])
    assert torch.equal(states[0][1], states[1][1])
