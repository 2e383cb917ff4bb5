"""FittedCalibrator: apply a fitted map to probabilities, print it, and save or load it as versioned JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import trueodds
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.saved_parameters import REFIT_HINT, check_keys, invalid_value, is_count
from trueodds.core import json_files
from trueodds.core.errors import InputError, Note
from trueodds.core.json_files import strict_json
from trueodds.core.printable import printable
from trueodds.core.results import Result
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.log_probabilities import log_softmax
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import check_logits, check_probabilities, softmax, two_columns


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedCalibrator(Result):
    """A fitted calibrator: applied to probabilities, printed, saved; it holds no rows.

    >>> from trueodds.calibrators.temperature import TemperatureSpec
    >>> preds = Predictions([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9])
    >>> fitted = fit(TemperatureSpec(), preds)
    >>> print(fitted)
    temperature · T = 2.00 · n=4 · 2 classes
    >>> fitted.predict_proba([0.9]).round(2).tolist()
    [[0.25, 0.75]]
    """

    calibration_map: CalibrationMap
    classes: tuple[Any, ...]
    n: int  # rows it was fitted on
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    report: Any = None  # how it was chosen, from `auto`; not saved

    @property
    def k(self) -> int:
        """How many classes."""
        return len(self.classes)

    @property
    def method(self) -> str:
        """The member whose map it is; `auto` gives that of its choice."""
        return self.calibration_map.name

    def predict_proba(
        self, y_prob: ArrayLike | Predictions, *, logits: bool = False, sum_tolerance: float | None = None
    ) -> Array:
        """Recalibrated probabilities (n, K), float64, of y_prob (n, K), or (n,) for the second of two classes.

        With `logits=True` y_prob holds logits, or log-probabilities. A map of the logits themselves takes nothing
        else. Raises InputError: TO501 for another number of classes, TO101 to TO104 and TO108 for values that are no
        probabilities, as for `Predictions`, TO509 for probabilities where logits are needed. Cost: O(nK) and, for
        maps by class, O(log) of their knots.
        """
        return self.calibration_map.apply(self._check_input(y_prob, logits, sum_tolerance))

    def predict(
        self, y_prob: ArrayLike | Predictions, *, logits: bool = False, sum_tolerance: float | None = None
    ) -> Array:
        """The name of the most probable class of each row, (n,); the first of several."""
        q = self.predict_proba(y_prob, logits=logits, sum_tolerance=sum_tolerance)
        return class_array(self.classes)[q.argmax(axis=1)]

    def predict_interval(
        self, y_prob: ArrayLike | Predictions, *, logits: bool = False, sum_tolerance: float | None = None
    ) -> tuple[Array, Array]:
        """Low and high ends, each (n, K), of every recalibrated probability, from methods that know them.

        They have no level: see the method for what they mean. Those of one class against the rest are taken before
        rows are made to sum to 1, and need not hold the probability itself.

        Raises InputError: TO510 for a method that gives probabilities only, and as for `predict_proba`.
        """
        interval = self.calibration_map.interval(self._check_input(y_prob, logits, sum_tolerance))
        if interval is None:
            raise InputError(
                "TO510",
                "This calibrator gives probabilities without an interval.",
                self.method,
                "Fit venn_abers or evidential for one.",
            )
        return interval

    def _check_input(self, y_prob: ArrayLike | Predictions, logits: bool, sum_tolerance: float | None) -> Probabilities:
        if self.calibration_map.logits and not logits:
            raise InputError(
                "TO509",
                "This calibrator was fitted on logits, which probabilities do not determine.",
                "probabilities",
                "Pass the logits with logits=True, or fit it on probabilities.",
            )
        if isinstance(y_prob, Predictions):
            logits = y_prob.logits is not None and (logits or self.calibration_map.takes_logs)
            y_prob = y_prob.logits if logits and y_prob.logits is not None else y_prob.p
        _in_order(y_prob, self.classes)
        if not logits:
            try:
                return check_prob_matrix(y_prob, self.k, sum_tolerance)
            except InputError as problem:
                raise arrays.with_logits_argument(problem) from None
        z = arrays.as_float_array(arrays.as_array(y_prob, "logits"), "logits")
        arrays.check_shape(z, "logits")
        _same_classes(z, self.k, "logits")
        if self.calibration_map.logits:
            return logit_columns(check_logits(z))
        return (
            LogProbabilities(log_softmax(check_logits(z)))
            if self.calibration_map.takes_logs
            else prob_columns(softmax(z))
        )

    def summary(self) -> str:
        """What was fitted, on what, with which settings, its table of parameters, and every note, for people."""
        settings_text = ", ".join(f"{name}={value!r}" for name, value in self.settings.items() if name != "calibrator")
        lines = [self.describe()]
        if requested := self.settings.get("calibrator"):
            lines.append(f"asked for: {requested}" + (f" ({settings_text})" if settings_text else ""))
        return "\n".join(map(printable, [*lines, *self.calibration_map.table(self.classes), *map(str, self.notes)]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON that `load` reads; the file is replaced as a whole."""
        save_calibrator(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write it as an ONNX graph of float64, from `probabilities` (or `logits`) to `calibrated`, both (n, K).

        For parametric maps. Raises InputError: TO524 for another map, or without the library onnx.
        """
        from trueodds.calibrators import onnx

        onnx.write_onnx(self.calibration_map, self.k, path)

    def to_dict(self) -> dict[str, Any]:
        """The calibrator as JSON holds it."""
        return {
            "schema": SCHEMA,
            "method": self.method,
            "parameters": self.calibration_map.to_dict(),
            "classes": list(self.classes),
            "n": self.n,
            "settings": strict_json(self.settings),
            "notes": [note.to_dict() for note in self.notes],
            "version": trueodds.__version__,
        }

    def describe(self) -> str:
        """The method, its parameters and the rows, in one line."""
        text = printable(f"{self.method} · {self.calibration_map.describe()} · n={self.n:,} · {self.k} classes")
        if self.report is None:
            return text
        outcome = {"confirmed": "confirmed on held-out rows", "too few rows": "not confirmed: too few rows"}
        return f"{text} · {outcome.get(self.report.outcome, 'no gain to be had') if self.report.choice else 'no fix was looked for'}"

    def __repr__(self) -> str:
        return f"Fitted({self.describe()})"


def prob_columns(p: Array) -> Array:
    """Probabilities (n,) or (n, K) as (n, K) float64; widened before 1 − p, so that no digit is lost to float32."""
    p = p.astype(np.float64, copy=False)
    return two_columns(p) if p.ndim == 1 else p


def logit_columns(z: Array) -> Array:
    """Log odds (n,) of the second class as the logits (0, z); logits (n, K) as they are."""
    return np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z


def check_prob_matrix(y_prob: ArrayLike, k: int, sum_tolerance: float | None = None) -> Array:
    """Checked probabilities as (n, K) float64: the checks of `Predictions`, for rows whose outcome is not known."""
    raw = arrays.as_array(y_prob, "y_prob")
    p = arrays.as_float_array(raw, "y_prob")
    arrays.check_shape(p, "y_prob")
    _same_classes(p, k, "y_prob")
    check_probabilities(p, raw.dtype, sum_tolerance, sums=True)
    return prob_columns(p)


def _same_classes(values: Array, k: int, name: str) -> None:
    n_classes = 2 if values.ndim == 1 else values.shape[1]
    if n_classes != k:
        one_row = values.ndim == 1 and len(values) == k
        raise InputError(
            "TO501",
            f"This calibrator was fitted for {k} classes.",
            f"{n_classes} ({name} has shape {values.shape})",
            "Pass a single row as P[:1]." if one_row else "Pass one column per class, in the order of .classes.",
        )


def _in_order(table: Any, classes: tuple[Any, ...]) -> None:
    """Refuse a frame whose columns are named after the classes, in another order than theirs."""
    columns = getattr(table, "columns", None)
    if columns is None or callable(columns):
        return
    named, expected = [str(name).rsplit("_", 1)[-1] for name in columns], [str(name) for name in classes]
    if named != expected and sorted(named) == sorted(expected):
        raise InputError(
            "TO501",
            "The columns come in another order than the calibrator's classes.",
            ", ".join(map(str, columns)),
            f"Order them as {', '.join(expected)}.",
        )


def class_array(classes: tuple[Any, ...]) -> Array:
    """The names as an array; of mixed types, they stay what they are."""
    if len({type(name) for name in classes}) == 1:
        plain = np.array(classes)
        if plain.ndim == 1:
            return plain
    mixed = np.empty(len(classes), dtype=object)
    mixed[:] = classes
    return mixed


SCHEMA = "trueodds.calibrator/1"
_FAMILY = "trueodds.calibrator/"
_KEYS = ("schema", "method", "parameters", "classes", "n", "settings", "notes", "version")


def save_calibrator(calibrator: FittedCalibrator, path: str | os.PathLike[str]) -> None:
    """Write the calibrator; another process sees the old file or the whole new one, never a part."""
    for name in calibrator.classes:
        if not isinstance(name, (str, int, float)) or name != name:
            raise InputError(
                "TO506",
                "Only names of classes that are text or numbers can be saved.",
                f"{name!r} of type {type(name).__name__}",
                "Pass classes= with the names as text.",
            )
    text = json.dumps(calibrator.to_dict(), allow_nan=False, indent=1)
    calibrator_from_dict(json.loads(text))  # what could not be read again is refused now
    json_files.write_text(path, text + "\n", "TO503")


def load(path: str | os.PathLike[str]) -> FittedCalibrator:
    """The calibrator in a file that `save_calibrator` wrote.

    Raises InputError: TO503 for a file that is no calibrator, TO504 for one of a later version, TO505 for a value
    that is missing or out of its range. Nothing in the file is ever run.
    """
    return calibrator_from_dict(json_files.read_json(path, "TO503"))


def calibrator_from_dict(document: Any) -> FittedCalibrator:
    """The calibrator behind the dictionary that `FittedCalibrator.to_dict` gives."""
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.uniform_mixture import read_map

    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(_FAMILY):
        raise InputError("TO503", "This is no saved calibrator.", f"schema {schema!r}", REFIT_HINT)
    if schema != SCHEMA:
        raise InputError(
            "TO504",
            f"This version reads {SCHEMA}.",
            schema,
            "Install a later version of trueodds, or fit and save it again with this one.",
        )
    check_keys(document, _KEYS, "the file")
    classes = document["classes"]
    if not isinstance(classes, list) or len(classes) < 2 or not all(_is_name(name) for name in classes):
        raise invalid_value("classes", "two or more names", classes)
    if len(set(classes)) != len(classes):
        raise invalid_value("classes", "names that differ", classes)
    n = document["n"]
    if not is_count(n) or n < 1:
        raise invalid_value("n", "a whole number of at least 1", n)
    settings, parameters, notes = document["settings"], document["parameters"], document["notes"]
    if not isinstance(settings, dict):
        raise invalid_value("settings", "an object", settings)
    if not isinstance(parameters, dict):
        raise invalid_value("parameters", "an object", parameters)
    if not isinstance(notes, list) or not all(_is_note(note) for note in notes):
        raise invalid_value("notes", "a list of coded texts", notes)
    if not isinstance(document["version"], str):
        raise invalid_value("version", "text", document["version"])
    method = document["method"]
    spec_type = CALIBRATORS.load(method) if isinstance(method, str) and method in CALIBRATORS.names() else None
    if spec_type is None or spec_type.map_type is None:
        raise invalid_value("method", "the name of a calibrator's map", method)
    return FittedCalibrator(
        read_map(spec_type.map_type, parameters, len(classes)),
        tuple(classes),
        n,
        settings,
        tuple(Note(note["code"], note["text"]) for note in notes),
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < float("inf"))


def _is_note(value: Any) -> bool:
    return (
        isinstance(value, dict) and set(value) == {"code", "text"} and all(isinstance(v, str) for v in value.values())
    )
