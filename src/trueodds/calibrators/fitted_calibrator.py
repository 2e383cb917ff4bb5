"""What a fit gives back: a map with the classes it is for, the settings that made it, and notes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import trueodds
from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, for_logs
from trueodds.calibrators.likelihood.logs import LogProbabilities, Probabilities
from trueodds.core.errors import InputError, Note
from trueodds.core.printable import printable
from trueodds.core.results import Result, strict
from trueodds.core.typing import Array
from trueodds.data import validation
from trueodds.data.complements import two_columns
from trueodds.data.log_probabilities import log_softmax
from trueodds.data.plausibility import doubts
from trueodds.data.predictions import Predictions
from trueodds.data.weights import are_counts


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
        return names(self.classes)[q.argmax(axis=1)]

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
                return matrix(y_prob, self.k, sum_tolerance)
            except InputError as problem:
                raise validation.with_argument(problem) from None
        z = validation.numbers(validation.as_array(y_prob, "logits"), "logits")
        validation.shape(z, "logits")
        _same_classes(z, self.k, "logits")
        if self.calibration_map.logits:
            return as_columns(validation.logits(z))
        return (
            LogProbabilities(log_softmax(validation.logits(z)))
            if self.calibration_map.takes_logs
            else columns(validation.softmax(z))
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
        wire.save(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write it as an ONNX graph of float64, from `probabilities` (or `logits`) to `calibrated`, both (n, K).

        For parametric maps. Raises InputError: TO524 for another map, or without the library onnx.
        """
        from trueodds.calibrators import onnx

        onnx.write(self.calibration_map, self.k, path)

    def to_dict(self) -> dict[str, Any]:
        """The calibrator as JSON holds it."""
        return {
            "schema": wire.SCHEMA,
            "method": self.method,
            "parameters": self.calibration_map.to_dict(),
            "classes": list(self.classes),
            "n": self.n,
            "settings": strict(self.settings),
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


def fit(spec: CalibratorSpec, preds: Predictions, *, counts: bool = False) -> FittedCalibrator:
    """The rule fitted to predictions; confidence alone is the pair (1 − c, c) of wrong and correct.

    Weights say which rows matter more, and not how many there are, unless they are `counts`: their mean is made 1, so
    that a penalty weighs as much as without them. How sure parameters are never takes weights for numbers of rows: those
    are rows, by `weight_kind="frequency"`. Where the logits are known the floor of logs is lowered to theirs.

    Raises InputError TO502 for labels that do not exclude each other.
    """
    spec = suited(spec, preds)
    P, Y, w = arrays(spec, preds)
    if preds.weight is not None and not counts:
        w = w * (np.count_nonzero(w) / w.sum())
    against = doubts(preds)
    declined = spec.declined(preds.n, against)
    calibration_map, report = declined or spec.of_classes(preds.classes).explained(P, Y, w, preds.cluster)
    class_totals = np.bincount(Y, w, preds.k) if Y.ndim == 1 else w @ Y
    notes = [
        *preds.notes,
        *against,
        *unobserved_class_notes(class_totals, preds.classes),
        *spec.notes(calibration_map, P, Y, w),
    ]
    if report is not None:
        notes += report.notes
    return FittedCalibrator(
        calibration_map, preds.classes, preds.n, settings_of(spec), tuple(dict.fromkeys(notes)), report
    )


def suited(spec: CalibratorSpec, preds: Predictions) -> CalibratorSpec:
    """The rule with the floor for these predictions; refused where it is not for such."""
    for_classes(spec, preds.kind, preds.k)
    return spec if preds.logits is None else for_logs(spec)


def for_classes(spec: CalibratorSpec, kind: str, k: int) -> None:
    """Refuse labels that do not exclude each other, and classes that the rule is not for."""
    if kind == "multilabel":
        raise InputError(
            "TO502",
            "A calibrator is for classes that exclude each other; these labels are independent.",
            f"{k} labels",
            "Fit one per label: Predictions(Y[:, j], P[:, j]).",
        )
    spec.check_classes(k)


def arrays(spec: CalibratorSpec, preds: Predictions) -> tuple[Any, Array, Array]:
    """Probabilities, their logarithms or logits, outcomes and weights as the rule takes them."""
    P: Any
    P, Y = raw_arrays(preds) if spec.accepts_raw_arrays else (columns(preds.p), preds.Y)
    if preds.logits is not None and spec.takes_logs:
        P = LogProbabilities(log_softmax(preds.logits))
    if getattr(spec, "logits", False):
        if preds.logits is None:
            raise InputError(
                "TO509",
                "A fit to logits needs the logits.",
                "probabilities",
                "Use Predictions.from_logits, or leave logits out for a fit to log probabilities.",
            )
        P = as_columns(validation.logits(preds.logits))
    return P, Y, preds.w


def settings_of(spec: CalibratorSpec) -> dict[str, Any]:
    """What the rule was fitted with; one around another calibrator has a setting of that name too."""
    own = {"inner" if name == "calibrator" else name: value for name, value in spec.settings().items()}
    return {"calibrator": spec.name, **own}


def raw_arrays(preds: Predictions) -> tuple[Array, Array]:
    """Probabilities (n, K) of the type they came in, and labels (n,) where there are some: nothing large is copied."""
    return preds.p if preds.p.ndim == 2 else columns(preds.P), preds.Y if preds.y is None else preds.y


def columns(p: Array) -> Array:
    """Probabilities (n,) or (n, K) as (n, K) float64; widened before 1 − p, so that no digit is lost to float32."""
    p = p.astype(np.float64, copy=False)
    return two_columns(p) if p.ndim == 1 else p


def as_columns(z: Array) -> Array:
    """Log odds (n,) of the second class as the logits (0, z); logits (n, K) as they are."""
    return np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z


def matrix(y_prob: ArrayLike, k: int, sum_tolerance: float | None = None) -> Array:
    """Checked probabilities as (n, K) float64: the checks of `Predictions`, for rows whose outcome is not known."""
    raw = validation.as_array(y_prob, "y_prob")
    p = validation.numbers(raw, "y_prob")
    validation.shape(p, "y_prob")
    _same_classes(p, k, "y_prob")
    validation.probabilities(p, raw.dtype, sum_tolerance, sums=True)
    return columns(p)


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


def names(classes: tuple[Any, ...]) -> Array:
    """The names as an array; of mixed types, they stay what they are."""
    if len({type(name) for name in classes}) == 1:
        plain = np.array(classes)
        if plain.ndim == 1:
            return plain
    mixed = np.empty(len(classes), dtype=object)
    mixed[:] = classes
    return mixed


def has_integer_weights(weight: Array | None) -> bool:
    """Whether weights are whole numbers, as scikit-learn's are where they stand for repeated rows."""
    return weight is not None and are_counts(weight)


def unobserved_class_notes(class_totals: Array, classes: tuple[Any, ...]) -> list[Note]:
    """The classes of which no outcome came, from the weight of those of each class (K,)."""
    missing = np.flatnonzero(class_totals == 0)
    if len(missing) == 0:
        return []
    listed = ", ".join(str(classes[c]) for c in missing[:5]) + (f" and {len(missing) - 5:,} more" * (len(missing) > 5))
    return [Note("TN501", f"No calibration row has class {listed}: what the map says about it is not backed by data.")]
