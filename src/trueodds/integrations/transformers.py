"""Calibration metrics for the Trainer of Hugging Face Transformers: a callable for its argument `compute_metrics`."""

from __future__ import annotations

from typing import Any

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError
from trueodds.core.signatures import checks_arguments
from trueodds.estimators.base import Estimator
from trueodds.integrations.epoch_summary import EpochCallback, EpochSummarizer, copy_to_array, flatten_positions

PADDING_LABEL = -100  # label of positions that the losses of Transformers and PyTorch ignore


@insert_shared_parameters
class CalibrationMetrics(EpochCallback):
    """Compute calibration error, noise floor, p-value, temperature and refinement at every evaluation of a `Trainer`.

    Pass an instance as ``Trainer(compute_metrics=...)``. The values reach every logger as ``eval_calibration_error``
    and so on, and `EarlyStoppingCallback` and ``load_best_model_at_end`` can use them.

    Parameters
    ----------
    logits : bool
        Whether the model returns logits; otherwise it returns probabilities.
    estimator, lens : as in `EpochCallback`
    ignore_index : int, optional
        Label of positions that are excluded, −100 for padded tokens. A note reports their number.
    prefix : str, default="calibration_"
        Beginning of the names of the values, to which the Trainer adds ``"eval_"``.
    sum_tolerance, rng : as in `EpochCallback`

    Raises
    ------
    InputError
        TO352 for labels that do not match the predictions, TO354 if there are no rows, TO355 if there are no labels,
        several kinds of labels, or padding labels without `ignore_index`, and as for `Predictions`.

    Notes
    -----
    The names are `n`, `accuracy`, `log_loss`, `error`, `noise_floor`, `pvalue`, `temperature` and `refinement` after
    the prefix; see `summarize_epoch` for their meaning. Lower is better, but a Trainer assumes the opposite of every
    metric whose name does not end with "loss": pass ``greater_is_better=False`` with
    ``metric_for_best_model="calibration_refinement"``.

    If the model returns several outputs, the first one has the logits. Predictions (n, length, K) of tokens become one
    row per token, and the tokens of a sequence a cluster, because they are not independent. With
    ``batch_eval_metrics=True`` the predictions are collected batch by batch, so that the Trainer does not keep them.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> compute_metrics = CalibrationMetrics(logits=True)  # Trainer(compute_metrics=compute_metrics)
    >>> logits = np.array([[0.0, 1.0], [2.0, 0.0]] * 50)
    >>> values = compute_metrics(SimpleNamespace(predictions=logits, label_ids=np.array([1, 0] * 50)))
    >>> values["calibration_n"], round(values["calibration_log_loss"], 4)
    (100.0, 0.2201)
    """

    @checks_arguments
    def __init__(
        self,
        logits: bool,
        *,
        estimator: str | Estimator = "ece",
        lens: Any = None,
        ignore_index: int | None = None,
        prefix: str = "calibration_",
        sum_tolerance: float | None = None,
        rng: int = 0,
    ) -> None:
        self._summarizer = EpochSummarizer(
            logits, estimator, lens, prefix, sum_tolerance=sum_tolerance, ignore_index=ignore_index, rng=rng
        )
        self._ignore_index = ignore_index
        self._collector = self._summarizer.make_collector()

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Add the predictions of an evaluation or of one of its batches, and compute the values after the last one.

        Parameters
        ----------
        prediction : EvalPrediction
            Passed by the Trainer.
        compute_result : bool, default=True
            Whether this is the last batch.

        Returns
        -------
        dict of str to float
            The values by name; empty before the last batch.
        """
        scores, labels = prediction.predictions, prediction.label_ids
        if labels is None or isinstance(labels, (tuple, list, dict)):
            kinds = "no labels" if labels is None else f"{len(labels)} kinds of labels"
            fix = "Evaluate rows that have labels; name the column of the labels with TrainingArguments(label_names=…)."
            raise InputError("TO355", "Calibration needs one label per prediction.", kinds, fix)
        scores = scores[0] if isinstance(scores, (tuple, list)) and len(scores) else scores
        if isinstance(scores, (tuple, list, dict)):
            fix = "Select the logits with Trainer(preprocess_logits_for_metrics=…)."
            raise InputError("TO355", "The first output of the model must be its logits.", type(scores).__name__, fix)
        scores, labels, clusters = flatten_positions(scores, copy_to_array(labels, "labels"))
        if self._ignore_index is None and labels.dtype.kind == "i" and (labels == PADDING_LABEL).any():
            raise InputError(
                "TO355",
                f"Some labels are {PADDING_LABEL}, which marks positions without a label.",
                f"{int((labels == PADDING_LABEL).sum()):,} of {len(labels):,} labels",
                f"Pass ignore_index={PADDING_LABEL} to exclude them.",
            )
        self._collector.add(scores, labels, clusters)
        if not compute_result:
            return {}
        collector, self._collector = self._collector, self._summarizer.make_collector()
        return self._summarizer.summarize(collector)
