"""Predictions keep their own arrays: later changes of those of the caller affect neither them nor results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import trueodds as to
from tests.calibrators.rows import GROUP_SETTINGS
from trueodds.calibrators import CALIBRATORS
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

N = 60


def input_arrays() -> dict[str, Array]:
    """Arrays that `Predictions` uses as they are: float64 probabilities and logits, int64 labels, weights, groups."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 3))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return {
        "y": rng.integers(0, 3, N),
        "Y": rng.integers(0, 2, (N, 3)),
        "P": P,
        "z": z,
        "p": P[:, 0].copy(),
        "right": rng.integers(0, 2, N),
        "weight": rng.uniform(1, 2, N),
        "group": rng.integers(0, 2, N),
        "cluster": np.arange(N) // 2,
        "row_id": np.arange(N),
    }


def extras(arrays: dict[str, Array]) -> dict[str, Any]:
    return {"weight": arrays["weight"], "cluster": arrays["cluster"], "group": {"g": arrays["group"]}}


MAKERS: dict[str, Callable[[dict[str, Array]], Predictions]] = {
    "classes": lambda a: Predictions(a["y"], a["P"], **extras(a)),
    "one probability": lambda a: Predictions(a["right"], a["p"], **extras(a)),
    "a slice": lambda a: Predictions(a["y"][::-1], a["P"][::-1], **extras(a)),
    "logits": lambda a: Predictions.from_logits(a["y"], a["z"], **extras(a)),
    "confidence": lambda a: Predictions.from_confidence(a["p"], a["right"], **extras(a)),
    "multilabel": lambda a: Predictions.from_multilabel(a["Y"], a["P"], **extras(a)),
    "log odds of labels": lambda a: Predictions.from_multilabel(a["Y"], a["z"], logits=True, **extras(a)),
    "votes": lambda a: Predictions(a["Y"] + 1, a["P"], **extras(a)),
    "images": lambda a: Predictions.from_dense(a["right"].reshape(2, 30), a["p"].reshape(2, 30)),
    "row ids": lambda a: Predictions(a["right"], a["p"]).with_row_id(a["row_id"]),
    "a pair that is read": lambda a: to.read((a["right"], a["p"]), weight=a["weight"]).collect(),
    "a mapping": lambda a: to.read({"label": a["right"], "p_1": a["p"], "g": a["group"]}, group="g").collect(),
    "a batch of a mapping": lambda a: next(to.read({"label": a["right"], "p_1": a["p"]}).batches()),
    "pandas": lambda a: to.read(pd.DataFrame({"label": a["right"], "p_1": a["p"]}, copy=False)).collect(),
    "pandas columns": lambda a: Predictions(pd.Series(a["right"], copy=False), pd.Series(a["p"], copy=False)),
    "polars": lambda a: to.read(pl.DataFrame({"label": a["right"], "p_1": a["p"]})).collect(),
    "polars columns": lambda a: Predictions(pl.Series(a["right"]), pl.Series(a["p"])),
    "arrow": lambda a: to.read(pa.table({"label": a["right"], "p_1": a["p"]})).collect(),
    "a list of arrow": lambda a: to.read(
        pa.table({"label": a["y"], "p": fixed_size_lists(a["P"])}), probs="p"
    ).collect(),
}


def fixed_size_lists(P: Array) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), P.shape[1])


def values(preds: Predictions) -> dict[str, Any]:
    arrays = {name: getattr(preds, name) for name in ("p", "logits", "y", "votes", "weight", "cluster", "row_id")}
    arrays |= {"P": preds.P, "Y": preds.Y, "w": preds.w, **preds.group}
    return {name: array.tolist() for name, array in arrays.items() if array is not None}


@pytest.mark.parametrize("name", MAKERS)
def test_a_later_change_of_the_arrays_does_not_change_predictions(name: str) -> None:
    arrays = input_arrays()
    preds = MAKERS[name](arrays)
    before = values(preds)
    for array in arrays.values():
        array[...] = 9
    assert values(preds) == before


@pytest.mark.parametrize("name", MAKERS)
def test_the_arrays_of_predictions_cannot_be_changed(name: str) -> None:
    preds = MAKERS[name](input_arrays())
    for field in ("p", "logits", "y", "votes", "weight", "cluster", "row_id"):
        array = getattr(preds, field)
        if array is not None:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 9
    for labels in preds.group.values():
        with pytest.raises(ValueError, match="read-only"):
            labels[0] = 9
    for array in (preds.p, preds[:5].p):
        array = array[:1]
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 9
    with pytest.raises(TypeError):
        preds.group["h"] = np.zeros(preds.n)  # type: ignore[index]


def test_the_mask_of_known_labels_cannot_be_changed() -> None:
    preds = Predictions.from_multilabel([[0, 1], [1, None]], [[0.2, 0.9], [0.6, 0.7]])
    assert preds.known is not None
    with pytest.raises(ValueError, match="read-only"):
        preds.known[1, 1] = True


def test_one_buffer_that_is_filled_once_per_model_gives_the_results_of_each_model() -> None:
    arrays, buffer = input_arrays(), np.empty((N, 3))
    models = {}
    for name, sharpness in (("sharp", 3.0), ("flat", 0.1)):
        z = arrays["z"] * sharpness
        buffer[...] = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        models[name] = Predictions(arrays["y"], buffer)
    # The Brier score of each, from its definition.
    for name, sharpness in (("sharp", 3.0), ("flat", 0.1)):
        z = arrays["z"] * sharpness
        P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        expected = ((P - np.eye(3)[arrays["y"]]) ** 2).sum(axis=1).mean()
        assert to.measure(models[name], "brier", interval=None).value == pytest.approx(expected, rel=1e-12)


def test_batches_of_files_are_not_copied_but_those_of_frames_are(tmp_path, monkeypatch) -> None:
    copied: list[int] = []
    monkeypatch.setattr(to.Predictions, "_copy_shared_arrays", lambda preds, *_: copied.append(preds.n))
    frame = pd.DataFrame({"p_0": [0.5, 0.2], "p_1": [0.5, 0.8], "label": [0, 1]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        assert [batch.n for batch in to.read(tmp_path / name, batch_rows=1).batches()] == [1, 1]
        assert to.read(tmp_path / name).collect().n == 2
    assert copied == []
    assert to.read(frame).collect().n + sum(batch.n for batch in to.read(frame).batches()) == 4
    assert copied == [2, 2]


def test_without_a_copy_the_arrays_are_those_of_the_caller_and_read_only() -> None:
    arrays = input_arrays()
    preds = Predictions(arrays["y"], arrays["P"], copy=False)
    assert preds.y is not None
    assert np.shares_memory(preds.p, arrays["P"])
    assert np.shares_memory(preds.y, arrays["y"])
    assert not preds.p.flags.writeable
    assert arrays["P"].flags.writeable
    assert Predictions.from_logits(arrays["y"], arrays["z"], copy=False).logits.base is not None
    assert np.shares_memory(Predictions.from_confidence(arrays["p"], arrays["right"], copy=False).p, arrays["p"])
    assert np.shares_memory(Predictions.from_multilabel(arrays["Y"], arrays["P"], copy=False).p, arrays["P"])
    with pytest.raises(to.InputError, match="TO203"):
        Predictions(arrays["y"], arrays["P"], copy=1)  # type: ignore[arg-type]


CALLS: dict[str, Callable[[Array, Array], Any]] = {
    "measure": lambda y, P: to.measure(y, P, "ece", resamples=9),
    "test": lambda y, P: to.test(y, P, "cox"),
    "tally": lambda y, P: to.tally(y, P),
    "draw": lambda y, P: to.draw(y, P, "reliability"),
    "compare": lambda y, P: to.compare(y, P, P[:, ::-1], "brier", resamples=9),
    "audit": lambda y, P: to.audit(y, P, resamples=99),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_arrays_copies_none_and_its_result_keeps_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, copies = input_arrays(), []
    monkeypatch.setattr(Predictions, "_copy_shared_arrays", lambda self, *inputs: copies.append(inputs))
    result = CALLS[name](arrays["y"], arrays["P"])
    before = str(result.to_dict())
    for array in arrays.values():
        array[...] = 9
    assert copies == []
    assert str(result.to_dict()) == before


# Others are fitted to a target of their own, or choose one of these.
FITTED_TO_ROWS = [n for n in CALIBRATORS.names() if n != "auto" and not CALIBRATORS.has_setting(n, "target")]


@pytest.mark.parametrize("method", FITTED_TO_ROWS)
def test_a_fitted_calibrator_keeps_no_array_of_the_caller(method: str) -> None:
    arrays = input_arrays()
    arrays["P"] = np.column_stack([1 - arrays["p"], arrays["p"]])
    calibrator = to.fit(arrays["right"], arrays["P"], method, **GROUP_SETTINGS.get(method, {}))
    before, rows = str(calibrator.to_dict()), np.array([[0.3, 0.7], [0.9, 0.1]])
    recalibrated = calibrator.predict_proba(rows)
    arrays["P"][...], arrays["right"][...] = 9, 9
    assert str(calibrator.to_dict()) == before
    assert np.array_equal(calibrator.predict_proba(rows), recalibrated)
