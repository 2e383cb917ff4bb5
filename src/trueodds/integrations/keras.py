"""Keras callback that adds the calibration of held-out predictions to the logs of every epoch."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, describe, install_command
from trueodds.core.settings import Count, check
from trueodds.core.signatures import checks_arguments
from trueodds.estimators.base import Estimator
from trueodds.integrations.epoch_summary import EpochCallback, EpochSummarizer, RowCollector, flatten_positions

try:
    import keras
except ModuleNotFoundError as problem:
    if problem.name == "keras":
        raise InputError("TO350", "This callback needs Keras.", "no keras", install_command("keras")) from None
    fix = "Set the environment variable KERAS_BACKEND to torch or jax before keras is imported."
    raise InputError("TO350", "The backend of Keras is not installed.", f"no {problem.name}", fix) from None

_PAIR_REMEDY = "Pass validation_data=(x, y), or a dataset of pairs (x, y) that can be read again in every epoch."


@insert_shared_parameters
class CalibrationCallback(EpochCallback, keras.callbacks.Callback):
    """Add calibration error, noise floor, p-value, temperature and refinement to the logs at the end of every epoch.

    The model predicts held-out rows, and the values are added to `logs`. The callbacks after this one read them there,
    such as `EarlyStopping`, `ModelCheckpoint`, `CSVLogger` and `TensorBoard`; so does the history. Training is not
    changed: neither weights nor random numbers.

    Parameters
    ----------
    validation_data : tuple (x, y) or dataset
        Held-out rows: two arrays, or a dataset of batches ``(x, y)`` that can be read in every epoch, such as a
        `keras.utils.PyDataset`, a `tf.data.Dataset`, a `DataLoader` or a list. Labels y are class numbers (n,), one-hot
        or votes (n, K).
    logits : bool
        Whether the model returns logits; otherwise, as with a final softmax or sigmoid, it returns probabilities.
    batch_size : int, default=32
        Number of rows per batch if `validation_data` are arrays.
    estimator, lens : as in `EpochCallback`
    every : int, default=1
        Add values in the epochs 0, `every`, 2 `every`, ….
    prefix : str, default="calibration_"
        Beginning of the names of the values.
    sum_tolerance, rng : as in `EpochCallback`

    Raises
    ------
    InputError
        TO350 on import if Keras is missing, TO352 for rows of the wrong shape, TO354 if there are no rows, TO356 if
        `validation_data` are not pairs or can be read only once, and as for `Predictions`.

    Notes
    -----
    The names are `n`, `accuracy`, `log_loss`, `error`, `noise_floor`, `pvalue`, `temperature` and `refinement` after
    the prefix; see `summarize_epoch` for their meaning. Keras does not know whether lower is better: pass
    ``mode="min"`` with ``monitor="calibration_refinement"``.

    A model that returns (n, 1) predicts the second of two classes. Predictions (n, …, K) of pixels or tokens become one
    row per position, and the positions of an image a cluster, because they are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.zeros((100, 3)), np.array([0, 1] * 50)
    >>> calibration = CalibrationCallback((x, y), logits=False)
    >>> stopping = keras.callbacks.EarlyStopping("calibration_refinement", mode="min", patience=3)
    >>> callbacks = [calibration, stopping]  # model.fit(x_train, y_train, callbacks=callbacks)
    """

    @checks_arguments
    def __init__(
        self,
        validation_data: Any,
        logits: bool,
        *,
        batch_size: int = 32,
        estimator: str | Estimator = "ece",
        lens: Any = None,
        every: int = 1,
        prefix: str = "calibration_",
        sum_tolerance: float | None = None,
        rng: int = 0,
    ) -> None:
        super().__init__()
        self._is_pair = isinstance(validation_data, tuple)
        if self._is_pair:
            _check_pair(validation_data, "Validation data")
        for batch in validation_data if isinstance(validation_data, list) else ():
            _check_pair(batch, "A batch of validation data")
        can_be_iterated = hasattr(validation_data, "__getitem__") or hasattr(validation_data, "__iter__")
        is_iterator = hasattr(validation_data, "__next__")
        is_array = hasattr(validation_data, "shape") or isinstance(validation_data, (str, Mapping))
        if not can_be_iterated or is_iterator or is_array:
            problem = "Validation data must be a pair of arrays, or a dataset that can be read in every epoch."
            raise InputError("TO356", problem, describe(validation_data), _PAIR_REMEDY)
        self._validation_data = validation_data
        self._batch_size = check("batch_size", batch_size, Count, 32)
        self._summarizer = EpochSummarizer(
            logits, estimator, lens, prefix, every=every, sum_tolerance=sum_tolerance, rng=rng
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Predict the held-out rows, and add the values to the logs.

        Parameters
        ----------
        epoch, logs
            Passed by Keras.
        """
        if not self._summarizer.is_due(epoch):
            return
        collector = self._summarizer.make_collector()
        with _restored_torch_rng():
            self._predict_rows(collector)
        values = self._summarizer.summarize(collector)
        if logs is not None:
            logs.update(values)

    def _predict_rows(self, collector: RowCollector) -> None:
        """Predict all rows of the validation data, and add them to the collector."""
        if self._is_pair:
            x, y = self._validation_data
            if len(y):
                scores = self.model.predict(x, batch_size=self._batch_size, verbose=0)
                collector.add(*flatten_positions(scores, keras.ops.convert_to_numpy(y)))
            return
        for batch in _read_batches(self._validation_data):
            _check_pair(batch, "A batch of validation data")
            x, y = batch
            scores = self.model.predict_on_batch(x)
            collector.add(*flatten_positions(scores, keras.ops.convert_to_numpy(y)))


def _check_pair(pair: Any, subject: str) -> None:
    """Raise TO356 for anything but a pair (x, y); `subject` is what the error calls it."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError("TO356", f"{subject} must be a pair (x, y).", describe(pair), _PAIR_REMEDY)


def _read_batches(dataset: Any) -> Iterator[Any]:
    """Yield the batches of a dataset once; a `PyDataset` is read by batch number, because its iterator may not end."""
    if isinstance(dataset, keras.utils.PyDataset):
        for number in range(len(dataset)):
            yield dataset[number]
    else:
        yield from dataset


def _restored_torch_rng() -> AbstractContextManager[None]:
    """Restore the state of torch's random number generator at the end, because reading a `DataLoader` changes it."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.random.fork_rng(devices=[])
