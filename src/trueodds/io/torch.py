"""Read tensors and loaders of tensors as predictions, with explicit logits or probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import check
from trueodds.core.typing import Array
from trueodds.data.arrays import tensor_to_array
from trueodds.data.predictions import Predictions, concatenate
from trueodds.data.probabilities import SUM_TOLERANCE_OF_DTYPE
from trueodds.data.remedies import restate_own_arguments
from trueodds.io.columns import ColumnSelection
from trueodds.io.source import RowProgress, Source

Kind = Literal["classes", "confidence", "multilabel"]
SCORE_KEYS = {True: ("logits",), False: ("probs", "probabilities")}  # in mappings, by whether they are logits
IGNORED_LABEL = -100  # marks padding, which the losses of PyTorch ignore by default
LABEL_KEYS = ("labels", "label", "targets", "target")


def check_tensors(scores: Any, target: Any, weight: Any = None) -> None:
    """Raise TO341, TO340 or TO342 unless all are tensors without gradients on one device."""
    tensors = {"the predictions": scores, "target": target} | ({} if weight is None else {"weight": weight})
    for name, value in tensors.items():
        if not isinstance(value, torch.Tensor):
            got = "None" if value is None else type(value).__name__
            fix = "Convert it with torch.as_tensor, or pass arrays to trueodds.Predictions."
            raise InputError("TO341", f"{name[:1].upper()}{name[1:]} must be a tensor.", got, fix)
        if value.requires_grad:
            raise InputError(
                "TO340",
                "Tensors must not require grad, so that no graph is kept.",
                f"{name} of shape {tuple(value.shape)}",
                "Pass tensor.detach(), or compute it under torch.no_grad().",
            )
    devices = {name: str(value.device) for name, value in tensors.items()}
    if len(set(devices.values())) > 1:
        got = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise InputError("TO342", "All tensors must be on one device.", got, "Move them with tensor.to(device).")


def to_predictions(
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    logits: bool = False,
    kind: Kind = "classes",
    classes: tuple[Any, ...] | None = None,
    copy: bool = True,
) -> Predictions:
    """Return tensors as validated predictions.

    The scores are logits only if `logits` says so: they are never guessed from their values. bfloat16 is converted to
    float32, which is exact. `copy` is whether to copy tensors on the CPU, which a data loader may fill again.
    """
    check_tensors(scores, target, weight)
    p, y, w = tensor_to_array(scores), tensor_to_array(target), None if weight is None else tensor_to_array(weight)
    try:
        if classes is not None and kind == "classes":
            y = _name_labels(y, classes)
        if kind == "classes" and logits:
            return Predictions.from_logits(y, p, weight=w, classes=classes, copy=copy)
        if logits:  # of independent labels, or of a correct answer
            p = np.asarray(torch.sigmoid(scores.detach().double()).cpu().numpy())
        if kind == "multilabel":
            return Predictions.from_multilabel(y, p, weight=w, classes=classes, copy=copy)
        if kind == "confidence":
            return Predictions.from_confidence(p, y, weight=w, copy=copy)
        tolerance = SUM_TOLERANCE_OF_DTYPE["bfloat16"] if scores.dtype == torch.bfloat16 else None
        return Predictions(y, p, weight=w, classes=classes, sum_tolerance=tolerance, copy=copy)
    except InputError as problem:
        raise _restate_error(problem, target) from None


def _restate_error(problem: InputError, target: torch.Tensor) -> InputError:
    """Return the error of invalid values with a remedy for tensors, whose labels are class numbers."""
    if problem.code != "TO105":
        return restate_own_arguments(problem)
    fix = "If they start at 1, subtract 1."
    if bool((target == IGNORED_LABEL).any()):
        fix = f"Leave out ignored rows: keep = target != {IGNORED_LABEL}, then pass preds[keep] and target[keep]."
    return InputError(problem.code, problem.problem, problem.got, fix)


def _name_labels(y: Array, classes: Sequence[Any]) -> Array:
    """Return class numbers (n,) as names of the classes, because `Predictions` with named classes takes names."""
    if y.ndim != 1 or y.dtype.kind not in "biu" or y.size == 0 or y.min() < 0 or y.max() >= len(classes):
        return y  # votes, or labels whose error the check of the rows raises
    return np.asarray(classes)[y.astype(np.int64)]


class TensorSource(Source):
    """Batches of tensors of a data loader, or of another iterable that can be read again."""

    format = "tensors"

    def __init__(
        self,
        batches: Iterable[Any],
        model: Callable[[Any], Any] | None,
        logits: bool,
        device: Any = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.name = type(batches).__name__
        self.rows = _count_rows(batches)
        self._batches = batches
        self._model = model
        self._logits = logits
        self._device = device
        self._classes = None if classes is None else tuple(classes)

    def batches(self) -> Iterator[Predictions]:
        """Yield each batch as predictions. A model is in evaluation mode meanwhile, and computes no gradients."""
        for scores, target in self._tensors():
            try:
                yield to_predictions(scores, target, logits=self._logits, classes=self._classes)
            except InputError as problem:
                if self._model is not None or problem.code not in ("TO101", "TO102", "TO104"):
                    raise
                fix = problem.fix + " If these are inputs of a model, pass model= to read_batches."
                raise InputError(problem.code, problem.problem, problem.got, fix) from None

    def _collect(self, limit: int | None, progress: RowProgress | None) -> Predictions | None:
        parts: list[Predictions] = []
        n_rows = 0
        for batch in self.batches():
            parts.append(batch)
            n_rows += batch.n
            if progress is not None:
                progress(n_rows, self.rows)
            if limit is not None and n_rows * batch.k > limit:
                return None
        if not parts:
            raise InputError("TO108", f"{self.name} has no batch.", "0 batches", "Pass at least one row.")
        return concatenate(parts)

    @property
    def n_probabilities(self) -> int | None:
        return None

    def _tensors(self) -> Iterator[tuple[Any, Any]]:
        """Yield scores and labels of each batch. The random state of torch, from which a loader draws, is restored."""
        model_modules = [self._model] if isinstance(self._model, torch.nn.Module) else []
        training_modules = [module for model in model_modules for module in model.modules() if module.training]
        random_state = torch.random.get_rng_state()
        try:
            for batch in self._batches:
                if self._model is None:
                    yield scores_and_labels(batch, self._logits)
                    continue
                for model in model_modules:
                    model.eval()
                inputs, keywords, target = _inputs_and_labels(batch, self._device)
                with torch.no_grad():
                    scores = _scores_of_output(self._model(*inputs, **keywords), self._logits)
                yield scores, target.to(scores.device)
        finally:
            torch.random.set_rng_state(random_state)
            for module in training_modules:
                module.training = True


def make_source(
    batches: Any,
    logits: bool,
    model: Callable[[Any], Any] | None = None,
    device: Any = None,
    classes: Sequence[Any] | None = None,
) -> Source:
    """Return the source of a DataLoader or another re-iterable; see `trueodds.torch.read_batches`."""
    logits = check("logits", logits, bool, False)
    if not isinstance(batches, Iterable) or isinstance(batches, (str, bytes, Mapping, torch.Tensor)):
        raise InputError(
            "TO343",
            "Batches must come from a DataLoader or another iterable of pairs of tensors.",
            describe(batches),
            "Pass tensors (labels, probabilities) to trueodds.Predictions.",
        )
    if isinstance(batches, Iterator):
        raise InputError(
            "TO343",
            "An iterator can be read only once, but some results need several passes.",
            type(batches).__name__,
            "Pass the DataLoader itself with model=, a list of batches, or update a trueodds.torch.TorchTally.",
        )
    return TensorSource(batches, model, logits, device, classes)


def open_source(data: Any, reading: Any) -> Source:
    """Return the source of a DataLoader that was passed to `trueodds.read`."""
    if not isinstance(data, torch.utils.data.DataLoader):
        fix = "Pass tensors (labels, probabilities) to trueodds.Predictions, or a DataLoader."
        raise InputError("TO343", "An object of torch of this type cannot be read.", type(data).__name__, fix)
    selection = reading.selection
    if selection != ColumnSelection(logits=True if selection.has_logits else None):
        fix = (
            "Leave out all but ⟨logits=True⟩ and ⟨classes=⟩; for weights and groups collect the rows into Predictions."
        )
        raise InputError("TO205", "A DataLoader has no columns.", "settings of columns", fix)
    return make_source(data, selection.has_logits, classes=reading.classes)


def _count_rows(batches: Any) -> int | None:
    if not isinstance(batches, torch.utils.data.DataLoader) or batches.drop_last:
        return None
    if type(batches.batch_sampler) is not torch.utils.data.BatchSampler or batches.sampler is not getattr(
        batches.batch_sampler, "sampler", None
    ):
        return None
    rows: Any = batches.dataset if isinstance(batches.dataset, torch.utils.data.IterableDataset) else batches.sampler
    return len(rows) if hasattr(rows, "__len__") else None


def scores_and_labels(batch: Any, logits: bool) -> tuple[Any, Any]:
    """Return the scores and labels of one batch, which is a pair or a mapping."""
    if isinstance(batch, Mapping):
        scores = next((batch[key] for key in SCORE_KEYS[logits] if key in batch), None)
        target = next((batch[key] for key in LABEL_KEYS if key in batch), None)
        if scores is not None and target is not None:
            return scores, target
    elif isinstance(batch, (tuple, list)) and len(batch) == 2:
        return batch[0], batch[1]
    raise _batch_error(batch, f"({SCORE_KEYS[logits][0]}, labels)")


def _inputs_and_labels(batch: Any, device: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return the arguments of the model, those by keyword, and the labels of one batch, on the device."""
    if isinstance(batch, Mapping):
        label_key = next((key for key in LABEL_KEYS if key in batch), None)
        if label_key is not None:
            keywords = {str(key): _move_to_device(value, device) for key, value in batch.items() if key != label_key}
            return (), keywords, _move_to_device(batch[label_key], device)
    elif isinstance(batch, (tuple, list)) and len(batch) == 2:
        return (_move_to_device(batch[0], device),), {}, _move_to_device(batch[1], device)
    raise _batch_error(batch, "(inputs, labels)")


def _move_to_device(value: Any, device: Any) -> Any:
    if device is None:
        return value
    if isinstance(value, Mapping):
        return {key: _move_to_device(item, device) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_move_to_device(item, device) for item in value)
    return value.to(device) if hasattr(value, "to") else value


def _scores_of_output(output: Any, logits: bool) -> torch.Tensor:
    """Return the tensor of scores in the output of a model: itself, the first of several, or that under a key."""
    if isinstance(output, Mapping):
        output = next((output[key] for key in SCORE_KEYS[logits] if key in output), None)
    elif isinstance(output, (tuple, list)) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor):
        fix = f"Let it return the tensor, alone or first, or a mapping with {SCORE_KEYS[logits][0]!r}."
        raise InputError("TO344", "The model must return a tensor of scores.", type(output).__name__, fix)
    return output


def _batch_error(batch: Any, pair: str) -> InputError:
    got = f"a mapping with {', '.join(map(str, list(batch)[:6]))}" if isinstance(batch, Mapping) else describe(batch)
    if isinstance(batch, (tuple, list)):
        got = f"{type(batch).__name__} of {len(batch)}"
    return InputError("TO344", f"A batch must be a pair {pair}.", got, "Adapt it with a generator class or collate_fn.")
