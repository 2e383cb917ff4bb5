"""Log results and pictures to Weights & Biases, TensorBoard, or whatever has the writer's methods."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueodds.core.errors import InputError, describe
from trueodds.core.results import Result
from trueodds.core.signatures import checks_arguments
from trueodds.diagrams.base import Diagram


def result_scalars(results: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of results by name: value, noise floor, p-value, and the ends of the interval.

    Parameters
    ----------
    results : mapping of str to result
        Results such as those of `measure`, `test` and `compare`, by the beginning of the names of their numbers.
        Diagrams are skipped.

    Returns
    -------
    dict of str to float
        Such as `ece`, `ece_low`, `ece_high` and `ece_noise_floor`. Undefined numbers are left out; infinite
        ones are kept.

    Raises
    ------
    InputError
        TO203 for what is neither a result nor a diagram.

    Examples
    --------
    >>> import trueodds as to
    >>> error = to.measure([0, 1, 1, 0] * 50, [0.2, 0.7, 0.7, 0.3] * 50, "ece")
    >>> list(result_scalars({"val/ece": error}))
    ['val/ece', 'val/ece_noise_floor', 'val/ece_low', 'val/ece_high']
    """
    scalars: dict[str, float] = {}
    for name, result in results.items():
        if isinstance(result, Diagram):
            continue
        if not isinstance(result, Result) or not result.number_fields:
            fix = "Pass results of measure, test or compare, or diagrams of draw."
            raise InputError("TO203", "Only results with numbers, and diagrams, are logged.", describe(result), fix)
        for field in result.number_fields:
            scalars[name if field in ("value", "difference") else f"{name}_{field}"] = getattr(result, field)
        if (interval := getattr(result, "interval", None)) is not None:
            scalars |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {name: float(x) for name, x in scalars.items() if x is not None and not math.isnan(x)}


@checks_arguments
def log_to_wandb(run: Any, results: Mapping[str, Any], *, step: int | None = None) -> None:
    """Log the numbers of results, and diagrams as images, to a run of Weights & Biases.

    Parameters
    ----------
    run : wandb.Run
        The run that `wandb.init` returned, online or offline.
    results : mapping of str to result or Diagram
        As in `result_scalars`; a diagram is drawn, and logged under its name.
    step : int, optional
        Step of the run; by default the next one.

    Raises
    ------
    InputError
        TO203 as in `result_scalars`, TO701 for a diagram if matplotlib is not installed.
    """
    import wandb

    diagrams = {name: each for name, each in results.items() if isinstance(each, Diagram)}
    with tempfile.TemporaryDirectory() as folder:  # figures would be taken only after `matplotlib.pyplot` was imported
        values: dict[str, Any] = dict(result_scalars(results))
        for i, (name, diagram) in enumerate(diagrams.items()):
            path = Path(folder, f"{i}.png")
            diagram.save(path)
            values[name] = wandb.Image(str(path))
        run.log(values, step=step)


@checks_arguments
def log_to_tensorboard(writer: Any, results: Mapping[str, Any], *, step: int = 0) -> None:
    """Log the numbers of results, and diagrams as figures, to TensorBoard.

    Parameters
    ----------
    writer : SummaryWriter
        That of `torch.utils.tensorboard` or of `tensorboardX`, or another object with `add_scalar` and `add_figure`.
    results : mapping of str to result or Diagram
        As in `result_scalars`; a diagram is drawn, and logged under its name.
    step : int, default=0
        Step of the summary, such as the epoch.

    Raises
    ------
    InputError
        TO203 as in `result_scalars`, TO701 for a diagram if matplotlib is not installed.

    Examples
    --------
    >>> import trueodds as to
    >>> logged = []
    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         logged.append((name, round(value, 4), step))
    >>> log_to_tensorboard(Writer(), {"brier": to.measure([0, 1], [0.2, 0.7], "brier", interval=None)}, step=3)
    >>> logged
    [('brier', 0.065, 3)]
    """
    for name, value in result_scalars(results).items():
        writer.add_scalar(name, value, step)
    for name, each in results.items():
        if isinstance(each, Diagram):
            writer.add_figure(name, each.draw(), step)
