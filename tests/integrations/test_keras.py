"""Does the Keras callback add the calibration of held-out rows to the logs, and leave training as it is?"""

from __future__ import annotations

import csv
import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.integrations.epoch_summary import RowCollector, summarize_epoch

torch = pytest.importorskip("torch")
os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from trueodds.integrations.keras import CalibrationCallback  # noqa: E402 - after the library

# Variables of Keras are read by torch in a way that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


def rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    return x, (2 * x[:, :3] + rng.gumbel(size=(n, 3))).argmax(axis=1)


X, Y = rows(150, 2)


def fit(callbacks: list[Any], columns: int = 3, activation: str | None = None, **settings: Any) -> tuple[Any, Any]:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((4,)),
            layers.Dense(16, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(columns, activation=activation),
        ]
    )
    model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = rows(96, 1)
    history = model.fit(
        x, y % columns if columns > 1 else y * 0, **{"epochs": 3, "verbose": 0} | settings, callbacks=callbacks
    )
    return model, history.history


def test_logged_values_are_those_of_the_public_functions() -> None:
    callback = CalibrationCallback((X, Y), logits=True)
    model, history = fit([callback])
    preds = to.Predictions.from_logits(Y, model.predict(X, verbose=0))
    for name, value in summarize_epoch(preds).to_dict("calibration_").items():
        assert len(history[name]) == 3
        assert history[name][-1] == value
    assert history["calibration_error"][-1] == to.measure(preds).value
    assert callback.summary() == summarize_epoch(preds)


def test_probabilities_one_hot_labels_and_other_settings() -> None:
    callback = CalibrationCallback(
        (X, np.eye(3)[Y]), logits=False, batch_size=64, estimator="brier", lens="class:1", prefix="val_", every=2
    )
    model, history = fit([callback], activation="softmax")
    preds = to.Predictions(Y, model.predict(X, verbose=0))
    assert len(history["val_error"]) == 2  # epochs 0 and 2
    assert history["val_error"][-1] == to.measure(preds, "brier", lens="class:1").value


def test_a_single_output_is_the_second_class() -> None:
    y = (Y == 1).astype(np.float32)
    callback = CalibrationCallback((X, y[:, None]), logits=False)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    history = model.fit(X, y, epochs=1, verbose=0, callbacks=[callback]).history
    preds = to.Predictions(y, model.predict(X, verbose=0)[:, 0])
    assert history["calibration_error"] == [to.measure(preds).value]
    summary = callback.summary()
    assert summary is not None
    assert summary.lens == "positive"


def test_pixels_are_rows_in_clusters() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4, 4, 2)).astype(np.float32), rng.integers(0, 3, (30, 4, 4))
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((4, 4, 2)), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, epochs=1, verbose=0, callbacks=[CalibrationCallback((x, y), logits=True)]).history
    preds = to.Predictions.from_dense(y, model.predict(x, verbose=0), axis=-1, logits=True)
    assert history["calibration_n"] == [480]
    assert history["calibration_pvalue"] == [summarize_epoch(preds).pvalue]


class Batches(keras.utils.PyDataset):
    """The validation rows in batches of 40."""

    def __init__(self) -> None:
        super().__init__()

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> Any:
        return X[40 * number :][:40], Y[40 * number :][:40]


def data_loader() -> Any:
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=40, shuffle=True
    )


@pytest.mark.parametrize("make", [Batches, data_loader, lambda: [list(pair) for pair in Batches()]])
def test_datasets_are_read_in_every_epoch(make: Any) -> None:
    _, expected = fit([CalibrationCallback((X, Y), logits=True)])
    _, history = fit([CalibrationCallback(make(), logits=True)])
    for name in ("n", "accuracy", "log_loss", "temperature", "refinement"):
        np.testing.assert_allclose(history[f"calibration_{name}"], expected[f"calibration_{name}"], rtol=1e-5)


def test_early_stopping_checkpoints_and_loggers_see_the_values(tmp_path: Path) -> None:
    name = "calibration_refinement"
    stopping = keras.callbacks.EarlyStopping(name, mode="min", patience=1, min_delta=10.0)
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", name, mode="min", save_best_only=True)
    logger = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    _, history = fit([CalibrationCallback((X, Y), logits=True), stopping, checkpoint, logger], epochs=6)
    assert len(history[name]) == 2  # no gain of 10, so that the second epoch is the last one
    assert checkpoint.best == min(history[name])
    with open(tmp_path / "log.csv", encoding="utf-8") as file:
        assert [float(row[name]) for row in csv.DictReader(file)] == history[name]


@pytest.mark.parametrize("make", [lambda: (X, Y), data_loader], ids=["arrays", "data loader"])
def test_training_is_unchanged(make: Any) -> None:
    states = []
    for callbacks in ([], [CalibrationCallback(make(), logits=True)]):
        model, history = fit(callbacks)
        states.append((model.get_weights(), history["loss"], torch.random.get_rng_state()))
    for weights, other_weights in zip(states[0][0], states[1][0], strict=True):
        np.testing.assert_array_equal(weights, other_weights)
    assert states[0][1] == states[1][1]
    assert torch.equal(states[0][2], states[1][2])


def test_no_rows_are_kept_after_the_epoch() -> None:
    def count() -> int:
        gc.collect()
        return sum(type(item) in (RowCollector, to.Predictions) for item in gc.get_objects())

    callback, before = CalibrationCallback((X, Y), logits=True), count()
    fit([callback], epochs=1)
    assert callback.summary() is not None
    assert count() == before


@pytest.mark.parametrize(
    ("data", "got"),
    [
        (X, "(150, 4)"),
        ((X, Y, Y), "tuple of 3"),
        ([(X, Y, Y)], "tuple of 3"),
        ([X, Y], "(150, 4)"),
        (iter([(X, Y)]), "list_iterator"),
        (((x, y) for x, y in [(X, Y)]), "generator"),
        ("rows.csv", "rows.csv"),
        (None, "None"),
        ({"x": X, "y": Y}, "dict"),
    ],
)
def test_validation_data_must_be_pairs_that_can_be_read_again(data: Any, got: str) -> None:
    with refused("TO356", got, fix="(x, y)"):
        CalibrationCallback(data, logits=True)


@pytest.mark.parametrize(
    ("data", "code", "got"),
    [
        (torch.utils.data.TensorDataset(*map(torch.from_numpy, (X, Y, Y))), "TO356", "tensor(2), tensor(2)"),
        ((X, Y[:-1]), "TO352", "(149,)"),
        ((X, np.eye(4)[Y]), "TO352", "(150, 4)"),
        ((X, Y + 1), "TO105", "3 in row"),
        ((X, Y + 0.5), "TO106", "in row 0"),
        ((X * np.nan, Y), "TO103", "nan in row 0"),
        ((X[:0], Y[:0]), "TO354", "0 rows"),
    ],
)
def test_bad_rows_are_refused(data: Any, code: str, got: str) -> None:
    with refused(code, got):
        fit([CalibrationCallback(data, logits=True)], epochs=1)


def test_logits_passed_as_probabilities_and_bad_settings_are_refused() -> None:
    with refused("TO102", fix="pass logits=True"):
        fit([CalibrationCallback((X, Y), logits=False)], epochs=1)
    with refused("TO202"):
        CalibrationCallback((X, Y))  # type: ignore[call-arg]
    with refused("TO203"):
        CalibrationCallback((X, Y), logits=True, batch_size=0)
    with refused("TO201"):
        CalibrationCallback((X, Y), logits=True, estimator="eec")


def test_the_error_without_keras_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "trueodds.integrations.keras")
    monkeypatch.setitem(sys.modules, "keras", None)
    with refused("TO350", "keras", fix=".[keras]"):
        importlib.import_module("trueodds.integrations.keras")
