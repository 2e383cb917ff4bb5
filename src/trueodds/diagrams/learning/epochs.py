"""Which model belongs to which epoch, and how well did it do?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.data.predictions import Predictions
from trueodds.estimators.proper import LogLoss
from trueodds.lenses.lens import Canonical
from trueodds.lenses.ranked import Confidence
from trueodds.lenses.view import View
from trueodds.tallies.scores import ScoreSums, log_loss
from trueodds.tallies.tally import Tally

Epoch = tuple[str, float]  # of which run, and when

_NAME = re.compile(r"(?:(?P<run>.+)/)?(?P<epoch>[^/]+)", re.DOTALL)


def epoch_of(name: str) -> Epoch:
    """Run and epoch from the name of a model.

    >>> epoch_of("a/3"), epoch_of("0.5")
    (('a', 3.0), ('', 0.5))
    """
    match = _NAME.fullmatch(name)
    try:
        epoch = float(match["epoch"]) if match else math.nan
    except ValueError:
        epoch = math.nan
    if not math.isfinite(epoch):
        raise unnamed(repr(name))
    return (match["run"] or "" if match else ""), epoch


def unnamed(got: str) -> InputError:
    """The error for what belongs to no epoch."""
    fix = "For instance draw({'1': first, '2': second}, 'training'), or {'a/1': …, 'b/1': …} for several runs."
    return InputError("TO205", "The diagram training takes models named by their epoch, or by run/epoch.", got, fix)


def check(models: Mapping[str, Predictions | Tally], named: Mapping[Epoch, Predictions | Tally]) -> None:
    """Refuse epochs that meet, runs without a name beside named ones, and models of different outcomes."""
    fix = "Give every run and epoch a name of its own."
    if len(named) < len(models):
        raise InputError("TO205", "Two models have the same run and epoch.", ", ".join(models), fix)
    if len({run == "" for run, _ in named}) > 1:
        raise InputError("TO205", "Some models are named for a run and some are not.", ", ".join(models), fix)
    kinds = {(rows.kind, tuple(map(str, rows.classes))) for rows in models.values()}
    if len(kinds) > 1:
        got = " and ".join(sorted(f"{kind} of {len(classes)}" for kind, classes in kinds))
        raise InputError("TO205", "The epochs of a training predict the same outcomes.", got, "Draw them apart.")


def loss_of(rows: Predictions | Tally) -> tuple[float, float]:
    """Mean log loss of the whole prediction, in nats, and its standard error."""
    if isinstance(rows, Tally):
        sums = rows.score("log_loss")
        return sums["mean"], sums["standard_error"]
    if rows.kind == "multilabel":
        per_label = [log_loss(p, y) for p, y in zip(rows.P.T, rows.Y.T, strict=True)]
        loss_sums = ScoreSums.of(np.mean(per_label, axis=0), rows.weight)
    else:
        (view,) = (Confidence() if rows.kind == "confidence" else Canonical()).views(rows)
        loss_sums = ScoreSums.of(LogLoss().rows(view), view.w)
    return loss_sums.mean, loss_sums.standard_error


def impossible(rows: Predictions) -> list[Note]:
    """What made a log loss infinite."""
    if rows.kind == "multilabel":
        return []
    (view,) = (Confidence() if rows.kind == "confidence" else Canonical()).views(rows)
    return LogLoss().notes(view)


def right_of(rows: Predictions | Tally) -> View | None:
    """Whether the predicted class came; labels that do not exclude each other have none."""
    if rows.kind == "multilabel":
        return None
    (view,) = rows.views("confidence") if isinstance(rows, Tally) else Confidence().views(rows)
    return view
