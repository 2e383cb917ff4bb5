"""What to do about an alarm: a shift, a temperature, or a recalibration, with the calls that fit and confirm it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueodds.core.json_files import JsonObject
from trueodds.monitoring.judgment import Contribution
from trueodds.monitoring.onset import Onset

_METHODS = {"level": "shift", "slope": "temperature", "cells": "auto", "scores": "auto"}


@dataclass(frozen=True, slots=True)
class Advice(JsonObject):
    """What to do.

    Attributes
    ----------
    action : {"nothing", "shift", "temperature", "recalibrate"}
        The advice.
    text : str
        The advice as a sentence.
    fit, confirm : str
        Python code that fits a calibrator to rows after the onset, and confirms it on later ones.
    fit_command, confirm_command : str
        The same as commands.
    """

    action: str
    text: str
    fit: str = ""
    confirm: str = ""
    fit_command: str = ""
    confirm_command: str = ""


def advise(contribution: Contribution, onset: Onset | None, columns: Mapping[str, Any]) -> Advice:
    """Return the advice for the largest part of the evidence; its commands read the `columns` of the monitor."""
    method = _METHODS[contribution.claim]
    action = "recalibrate" if method == "auto" else method
    of_group = "" if contribution.group is None else f" of the group {contribution.group}"
    since = "the change" if onset is None else onset.since
    what = {
        "shift": "shift the log odds",
        "temperature": "change the slope of the log odds by a temperature",
        "recalibrate": "fit the map that predicts best",
    }[action]
    labels, scores = _options(columns, ("label", "correct")), _options(columns, ("probs", "logits", "confidence"))
    return Advice(
        action=action,
        text=f"Check first whether labels or inputs changed. Then {what}, on rows{of_group} since {since}, and"
        " confirm the gain on rows that came later still.",
        fit=f"calibrator = to.fit(since_onset, {method!r})",
        confirm='to.compare(calibrator.recalibrate(later), later, "log_loss")',
        fit_command=f"trueodds fit since_onset.parquet{labels}{scores} --method {method} --out calibrator.json",
        confirm_command=f"trueodds apply calibrator.json later.parquet{scores} --out recalibrated.parquet && trueodds"
        f" compare recalibrated.parquet later.parquet{labels}{scores} --estimator log_loss"
        " --fail-on 'difference.high>0'",
    )


def _options(columns: Mapping[str, Any], names: Sequence[str]) -> str:
    """Spell the columns of these names as options, each after a space."""
    return "".join(
        f" --{name.replace('_', '-')} {shlex.quote(columns[name])}"
        for name in names
        if isinstance(columns.get(name), str)
    )
