"""Lightning callback that logs the calibration of the validation predictions after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.errors import InputError, describe, install_command
from trueodds.core.signatures import checks_arguments
from trueodds.estimators.base import Estimator
from trueodds.integrations.epoch_summary import EpochCallback, EpochSummarizer, RowCollector

try:
    import torch
    from torch import distributed

    try:
        from lightning.pytorch import Callback
    except ModuleNotFoundError:
        from pytorch_lightning import Callback

    from trueodds.io.torch import LABEL_KEYS, SCORE_KEYS
except ModuleNotFoundError as problem:
    raise InputError(
        "TO350", "This callback needs Lightning.", f"no {problem.name}", install_command("lightning")
    ) from None

# Function of the module, the result of `validation_step` and the batch, which returns scores and labels.
OutputReader = Callable[[Any, Any, Any], tuple[Any, Any]]


@insert_shared_parameters
class CalibrationCallback(EpochCallback, Callback):
    """Log calibration error, noise floor, p-value, temperature and refinement at the end of every validation epoch.

    The values are logged with ``log_dict`` of the module. They reach every logger, and `EarlyStopping` and
    `ModelCheckpoint` can monitor them. Training is not changed: neither weights nor random numbers.

    Parameters
    ----------
    logits : bool
        Whether the model returns logits; otherwise it returns probabilities.
    estimator, lens : as in `EpochCallback`
    every : int, default=1
        Log the epochs 0, `every`, 2 `every`, …. Between them, `EarlyStopping` reads the latest values again.
    prefix : str, default="calibration/"
        Beginning of the names of the logged values.
    output : callable, optional
        Function of the module, the result of `validation_step` and the batch. It returns scores (n, K) or (n,), and
        labels (n,) or votes (n, K). By default `validation_step` must return a dict with the scores at ``"logits"`` (or
        ``"probs"`` if `logits` is False), and the labels at ``"labels"`` or ``"target"``.
    sum_tolerance, rng : as in `EpochCallback`

    Raises
    ------
    InputError
        TO350 on import if Lightning is missing, TO351 if scores or labels are not returned, TO352 and TO340 for rows of
        the wrong shape and tensors with gradients, TO354 if there are no rows, and as for `Predictions`.

    Notes
    -----
    The logged names are `n`, `accuracy`, `log_loss`, `error`, `noise_floor`, `pvalue`, `temperature` and `refinement`
    after the prefix; see `summarize_epoch` for their meaning. With several validation data loaders each has its own
    values, whose names end with ``"/dataloader_idx_0"`` and so on.

    Several processes gather their rows, and each logs the values of all rows. `DistributedSampler` repeats a few rows
    so that every process has the same number; they count twice.

    Examples
    --------
    >>> from lightning.pytorch.callbacks import EarlyStopping
    >>> calibration = CalibrationCallback(logits=True)
    >>> stopping = EarlyStopping(monitor="calibration/refinement", mode="min", patience=3)
    >>> callbacks = [calibration, stopping]  # lightning.Trainer(callbacks=callbacks)
    """

    @checks_arguments
    def __init__(
        self,
        logits: bool,
        *,
        estimator: str | Estimator = "ece",
        lens: Any = None,
        every: int = 1,
        prefix: str = "calibration/",
        output: OutputReader | None = None,
        sum_tolerance: float | None = None,
        rng: int = 0,
    ) -> None:
        super().__init__()
        if output is not None and not callable(output):
            fix = "Pass a function of (module, outputs, batch)."
            raise InputError("TO351", "output must be a function that returns scores and labels.", str(output), fix)
        self._summarizer = EpochSummarizer(
            logits, estimator, lens, prefix, every=every, sum_tolerance=sum_tolerance, rng=rng
        )
        self._score_keys = SCORE_KEYS[bool(logits)]
        self._output = output
        self._collectors: dict[int, RowCollector] = {}  # of each validation data loader

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Remove the rows of an epoch that was interrupted.

        Parameters
        ----------
        trainer, pl_module
            Passed by Lightning.
        """
        self._collectors = {}

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Collect the rows of a batch.

        Parameters
        ----------
        trainer, pl_module, outputs, batch, batch_idx, dataloader_idx
            Passed by Lightning.
        """
        if not self._is_active(trainer):
            return
        scores, labels = self._read_output(pl_module, outputs, batch)
        if dataloader_idx not in self._collectors:
            self._collectors[dataloader_idx] = self._summarizer.make_collector(shard=trainer.global_rank)
        self._collectors[dataloader_idx].add(scores, labels)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the values of the epoch.

        Parameters
        ----------
        trainer, pl_module
            Passed by Lightning.
        """
        if not self._is_active(trainer):
            return
        collectors, self._collectors = self._collectors, {}
        n_loaders = max(1, len(trainer.num_val_batches))
        for loader in range(n_loaders):
            collector = collectors.pop(loader, None) or self._summarizer.make_collector(shard=trainer.global_rank)
            if trainer.world_size > 1:
                from trueodds.integrations.gather_rows import gather_rows

                is_on_cpu = distributed.get_backend() == "gloo"
                gather_rows(collector, "cpu" if is_on_cpu else pl_module.device)
            suffix = f"/dataloader_idx_{loader}" if n_loaders > 1 else ""
            dtype = torch.float32 if pl_module.device.type == "mps" else torch.float64
            values = {
                f"{name}{suffix}": torch.tensor(value, dtype=dtype, device=pl_module.device)
                for name, value in self._summarizer.summarize(collector).items()
            }
            pl_module.log_dict(values, sync_dist=trainer.world_size > 1, add_dataloader_idx=False)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Remove the rows of the interrupted epoch.

        Parameters
        ----------
        trainer, pl_module, exception
            Passed by Lightning.
        """
        self._collectors = {}

    def _is_active(self, trainer: Any) -> bool:
        """Return whether this validation epoch is summarized: every epoch that is due, but no sanity check."""
        is_training = trainer.state.fn == "fit"
        return not trainer.sanity_checking and (not is_training or self._summarizer.is_due(trainer.current_epoch))

    def _read_output(self, pl_module: Any, outputs: Any, batch: Any) -> tuple[Any, Any]:
        """Return the scores and labels of a batch; raise TO351 if they are not there."""
        if self._output is not None:
            result = self._output(pl_module, outputs, batch)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                fix = "Return two tensors, such as outputs['logits'], batch[1]."
                raise InputError("TO351", "output must return the pair (scores, labels).", describe(result), fix)
            return result[0], result[1]
        keys = list(outputs) if isinstance(outputs, Mapping) else []
        score_key = next((key for key in self._score_keys if key in keys), None)
        label_key = next((key for key in LABEL_KEYS if key in keys), None)
        if score_key is None or label_key is None:
            required = self._score_keys[0]
            raise InputError(
                "TO351",
                f"validation_step must return a dict with {required!r}, and with 'labels' or 'target'.",
                f"a dict with {', '.join(map(repr, keys))}" if keys else type(outputs).__name__,
                f"Return {{{required!r}: …, 'labels': …}}, or pass a function of (module, outputs, batch) as output=.",
            )
        return outputs[score_key], outputs[label_key]
