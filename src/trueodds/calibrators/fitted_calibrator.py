"""FittedCalibrator: apply a fitted map to probabilities, print it, and save or load it as versioned JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import trueodds
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities
from trueodds.calibrators._groups.rows_with_columns import RowsWithColumns, check_features, select_columns
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.calibrator_predictions import (
    add_note,
    check_class_count,
    check_column_order,
    check_prob_matrix,
    class_names_array,
    independent_labels_error,
    logit_columns,
    missing_logits_error,
    replace_probabilities,
    resolve_predictions,
)
from trueodds.calibrators.saved_parameters import (
    REFIT_HINT,
    check_keys,
    read_class_names,
    read_map_type,
    read_notes,
    read_value,
)
from trueodds.calibrators.uniform_mixture import read_map
from trueodds.core import json_files
from trueodds.core.errors import InputError, Note, install_command
from trueodds.core.formatting import format_keywords
from trueodds.core.printable import to_printable
from trueodds.core.results import Result
from trueodds.core.settings import Count
from trueodds.core.signatures import checks_arguments
from trueodds.core.table import to_data_frame
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.prediction_arrays import Groups
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import check_logits, prob_columns, softmax
from trueodds.data.remedies import restate_own_arguments
from trueodds.data.weights import check_groups
from trueodds.tallies.batch_fingerprints import BatchFingerprints


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FittedCalibrator(Result):
    """A fitted calibrator, which can be applied to probabilities, printed and saved; it holds no rows.

    Attributes
    ----------
    calibration_map : CalibrationMap
        The fitted map.
    classes : tuple
        Names of the K classes, in the order of the columns.
    n : int
        Number of rows of the fit.
    settings : mapping
        Calibrator and settings that were used.
    notes : tuple of Note
        Coded facts about the data and the fit.
    report : Recalibration or None
        Candidates, choice and confirmation, from `auto` (not saved).
    fingerprint : str or None
        Hash of the rows of the fit, by which `recalibrate` recognizes them; None if it is unknown.

    Examples
    --------
    >>> from trueodds.calibrators.fitting import fit
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
    fingerprint: str | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def method(self) -> str:
        """Name of the calibrator whose map this is; after `auto`, that of the applied one."""
        return self.calibration_map.name

    @property
    def parameters(self) -> dict[str, Any]:
        """The fitted parameters by their symbols in the literature, such as `{"T": 1.6}`; empty for curves of knots.

        Each is an attribute too, as in `fitted.T`. Those of one class each are arrays.
        """
        return self.calibration_map.named_parameters()

    @property
    def value(self) -> dict[str, Any]:
        """The `parameters`, under the name that the number of every result has."""
        return self.parameters

    @property
    def interval(self) -> dict[str, Array] | None:
        """The 95 % intervals of the parameters of `llo` and `mcllo`; None for others, which keep no standard errors."""
        return self.calibration_map.named_intervals() or None

    def __getattr__(self, name: str) -> Any:
        # An attribute of the class is not yet set while it is unpickled, or has raised an AttributeError itself.
        is_own = name.startswith("_") or name in type(self).__dataclass_fields__ or hasattr(type(self), name)
        parameters = {} if is_own else self.parameters
        if name not in parameters:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return parameters[name]

    def frame(self) -> Any:
        """Return the parameters as a data frame with a row per number.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed. `parameter`
            is the symbol, `index` the position in an array, such as ``"0, 1"`` of a matrix, and empty for a number.
            `low` and `high` are the ends of the 95 % `interval`. They are NaN except for `llo` and `mcllo`: the fits of
            the other calibrators keep no covariance. Of two classes, `llo` is the model of `platt` with intervals; of
            more classes, 1/T of `temperature` has the interval of the estimator `calibration_slope`.
        """
        columns: dict[str, list[Any]] = {"parameter": [], "index": [], "value": [], "low": [], "high": []}
        intervals = self.interval or {}
        for symbol, value in self.parameters.items():
            ends = np.broadcast_to(intervals.get(symbol, math.nan), (*np.shape(value), 2))
            for index, number in np.ndenumerate(value):
                columns["parameter"].append(symbol)
                columns["index"].append(", ".join(map(str, index)))
                columns["value"].append(float(number))
                columns["low"].append(float(ends[index][0]))
                columns["high"].append(float(ends[index][1]))
        return to_data_frame(columns)

    @checks_arguments
    def predict_proba(
        self,
        y_prob: ArrayLike | Predictions,
        *,
        logits: bool = False,
        sum_tolerance: float | None = None,
        group: ArrayLike | Groups | None = None,
        features: Any = None,
    ) -> Array:
        """Recalibrate predicted probabilities.

        Cost: O(nK) and, for maps by class, O(log) of their knots.

        Parameters
        ----------
        y_prob : array-like of shape (n, K) or (n,), or Predictions
            Predicted probabilities; of shape (n,) those of the second of two classes.
        logits : bool, default=False
            Whether `y_prob` holds logits or log-probabilities. A map that was fitted on logits accepts nothing else.
        sum_tolerance : float, optional
            Largest deviation of a row's sum from 1, as for `Predictions`.
        group : array-like of shape (n,) or mapping of name to array-like, optional
            Group columns of the rows, which a calibrator of groups needs; `Predictions` have them.
        features : data frame or mapping of name to array-like, optional
            Features of the rows, which `multicalibrated` needs if it was fitted with them.

        Returns
        -------
        ndarray of shape (n, K)
            Recalibrated probabilities, float64.

        Raises
        ------
        InputError
            TO501 for other classes; TO101 to TO104, TO108 and TO112 for invalid values, as for `Predictions`; TO509 for
            probabilities where logits are needed; TO516 if a column is missing that the calibrator needs.
        """
        return self.calibration_map.apply(self._to_map_input(y_prob, logits, sum_tolerance, group, features))

    @checks_arguments
    def predict(
        self,
        y_prob: ArrayLike | Predictions,
        *,
        logits: bool = False,
        sum_tolerance: float | None = None,
        group: ArrayLike | Groups | None = None,
        features: Any = None,
    ) -> Array:
        """Predict the most probable class of each row after recalibration.

        Parameters
        ----------
        y_prob, logits, sum_tolerance, group, features
            As for `predict_proba`, with the same errors.

        Returns
        -------
        ndarray of shape (n,)
            Names of the classes; the first one where several are equally probable.
        """
        q = self.predict_proba(y_prob, logits=logits, sum_tolerance=sum_tolerance, group=group, features=features)
        return class_names_array(self.classes)[q.argmax(axis=1)]

    @checks_arguments
    def predict_interval(
        self,
        y_prob: ArrayLike | Predictions,
        *,
        logits: bool = False,
        sum_tolerance: float | None = None,
        group: ArrayLike | Groups | None = None,
        features: Any = None,
    ) -> tuple[Array, Array]:
        """Compute the interval of each recalibrated probability, for calibrators that provide one.

        Intervals have no confidence level; the calibrator defines them, before rows are divided by their sums.

        Parameters
        ----------
        y_prob, logits, sum_tolerance, group, features
            As for `predict_proba`, with the same errors.

        Returns
        -------
        lower, upper : ndarray of shape (n, K)
            Ends of the intervals. InputError TO510 for a calibrator without them.
        """
        interval = self.calibration_map.interval(self._to_map_input(y_prob, logits, sum_tolerance, group, features))
        if interval is None:
            raise InputError(
                "TO510",
                "This calibrator gives probabilities without an interval.",
                self.method,
                "Fit venn_abers or evidential for intervals.",
            )
        return interval

    @checks_arguments
    def recalibrate(self, preds: Predictions | tuple[ArrayLike, ArrayLike], *, features: Any = None) -> Predictions:
        """Recalibrate predictions; labels, weights, groups, clusters and all else that belongs to the rows is kept.

        Parameters
        ----------
        preds : Predictions or tuple
            Predictions for the classes of the calibrator, in its order, or the tuple `(y_true, y_prob)`.
        features : data frame or mapping of name to array-like, optional
            As for `predict_proba`.

        Returns
        -------
        Predictions
            The rows with recalibrated probabilities, in one column per class; a confidence stays a single column. Notes
            say that they are the rows of the fit, in the same order (TN164), or have unknown groups (TN550).

        Raises
        ------
        InputError
            TO203 for other data, TO501 for other classes, TO502 for independent labels, TO509 if logits are needed.

        Examples
        --------
        >>> from trueodds.calibrators.fitting import fit
        >>> from trueodds.calibrators.temperature import TemperatureSpec
        >>> preds = Predictions([1, 1, 1, 0], [0.9] * 4, group={"site": ["a", "a", "b", "b"]})
        >>> recalibrated = fit(TemperatureSpec(), preds).recalibrate(preds)
        >>> recalibrated.p.round(2)[0].tolist(), recalibrated.group["site"].tolist()
        ([0.25, 0.75], ['a', 'a', 'b', 'b'])
        """
        preds = resolve_predictions(preds, self.classes)
        Q = self.predict_proba(preds, logits=self.calibration_map.logits, features=features)
        recalibrated = replace_probabilities(preds, Q)
        for note in self.notes_on_rows(preds, features):
            recalibrated = add_note(recalibrated, note)
        return recalibrated

    def notes_on_rows(self, preds: Predictions, features: Any = None) -> list[Note]:
        """Return the notes on rows that are recalibrated: the rows of the fit (TN164), unknown groups (TN550).

        Rows are recognized if they are complete and in the same order; without labels they are not.

        Parameters
        ----------
        preds : Predictions
            The rows.
        features : data frame or mapping of name to array-like, optional
            As for `predict_proba`.

        Returns
        -------
        list of Note
            The notes.
        """
        columns = {**preds.group, **check_features(features, preds.n)}
        has_columns = set(self.calibration_map.required_columns) <= set(columns)
        notes = notes_on_groups(self.calibration_map.count_unknown(columns) if has_columns else 0, preds.n)
        if self.fingerprint is None or preds.labeled is not None:
            return notes
        if BatchFingerprints.from_predictions(preds).single_name != self.fingerprint:
            return notes
        text = (
            f"The calibrator {self.method} was fitted to these rows, so errors are smaller than on new rows."
            " Recalibrate rows that it was not fitted to, or evaluate it by cross_fitted."
        )
        return [Note("TN164", text), *notes]

    def _to_map_input(
        self,
        y_prob: ArrayLike | Predictions,
        logits: bool,
        sum_tolerance: float | None,
        group: ArrayLike | Groups | None,
        features: Any,
    ) -> Probabilities | RowsWithColumns:
        """Validate predictions and the columns that the map needs, and convert them to what it takes."""
        P = self._to_map_probabilities(y_prob, logits, sum_tolerance)
        names = self.calibration_map.required_columns
        if not names:
            return P
        columns = {**check_groups(group, len(P)), **check_features(features, len(P))}
        if isinstance(y_prob, Predictions):
            columns = {**y_prob.group, **columns}
        return RowsWithColumns(P, select_columns(columns, names))

    def _to_map_probabilities(
        self, y_prob: ArrayLike | Predictions, logits: bool, sum_tolerance: float | None
    ) -> Probabilities:
        """Validate predictions and convert them to probabilities, their logarithms or logits, as the map takes them."""
        if self.calibration_map.logits and not logits:
            raise missing_logits_error()
        if isinstance(y_prob, Predictions):
            if self.calibration_map.logits and y_prob.logits is None:
                raise missing_logits_error()
            if y_prob.kind == "multilabel":
                raise independent_labels_error(y_prob.k)
            if y_prob.logits is None or not (logits or self.calibration_map.takes_logs):
                check_class_count(y_prob.p, self.k, "y_prob")
                return prob_columns(y_prob.p)  # which were checked, with their own tolerance
            y_prob, logits = y_prob.logits, True
        check_column_order(y_prob, self.classes)
        if not logits:
            try:
                return check_prob_matrix(y_prob, self.k, sum_tolerance)
            except InputError as problem:
                raise restate_own_arguments(problem) from None
        z = arrays.as_float_array(arrays.as_array(y_prob, "logits"), "logits")
        arrays.check_shape(z, "logits")
        check_class_count(z, self.k, "logits")
        if self.calibration_map.logits:
            return logit_columns(check_logits(z))
        if self.calibration_map.takes_logs:
            return LogProbabilities.from_logits(check_logits(z))
        return prob_columns(softmax(z))

    def summary(self) -> str:
        """Describe the fit, its settings, its table of parameters and every note.

        Returns
        -------
        str
            Several lines of text.
        """
        lines, settings = [self.describe()], dict(self.settings)
        if requested := settings.pop("calibrator", None):
            lines.append(f"settings: {requested}" + (f" ({format_keywords(settings)})" if settings else ""))
        return "\n".join(map(to_printable, [*lines, *self.calibration_map.table(self.classes), *map(str, self.notes)]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the calibrator as JSON, which `load` reads; the file is replaced as a whole.

        Parameters
        ----------
        path : str or path-like
            File to write. InputError TO503 if that fails; TO506 for class names that are neither text nor numbers.
        """
        save_calibrator(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Save the calibrator as an ONNX graph: float64 `probabilities` (or `logits`) to `calibrated`, (n, K).

        Parameters
        ----------
        path : str or path-like
            File to write. InputError TO524 for a map without a formula, or if the library onnx is missing.
        """
        from trueodds.calibrators.formula import write_onnx

        write_onnx(self.calibration_map, self.k, path)

    def to_sql(self, column: str | Sequence[str]) -> str | list[str]:
        """Write the calibrator as SQL of DuckDB and PostgreSQL: formulas, and steps or lines between knots.

        Parameters
        ----------
        column : str or sequence of str
            For two classes, the column with the probability of the second class. Otherwise the K columns, in the order
            of the classes. A calibrator that was fitted on logits takes columns of logits. Names are quoted.

        Returns
        -------
        str or list of str
            The expression of the recalibrated probability of the second class or, for several columns, one expression
            for each class; NULL if a value is missing or no probability. Rows are not divided by their sum.

        Raises
        ------
        InputError
            TO526 for a map without a formula, TO501 for another number of columns.

        Examples
        --------
        >>> from trueodds.calibrators.temperature import TemperatureMap
        >>> fitted = FittedCalibrator(TemperatureMap(0.5), ("no", "yes"), n=4)
        >>> query = f"SELECT {fitted.to_sql('score')} AS recalibrated FROM predictions"
        """
        from trueodds.calibrators.formula import write_sql

        expressions = write_sql(self.calibration_map, [column] if isinstance(column, str) else list(column), self.k)
        return expressions[1] if isinstance(column, str) else expressions

    def to_python(self) -> str:
        """Write the calibrator as the source text of a Python function that needs only NumPy.

        Returns
        -------
        str
            A module with `recalibrate(P)`, from probabilities (or logits) to probabilities, (n, K).
            InputError TO526 for a map without a formula.

        Examples
        --------
        >>> from trueodds.calibrators.temperature import TemperatureMap
        >>> module = {}
        >>> exec(FittedCalibrator(TemperatureMap(0.5), ("no", "yes"), n=4).to_python(), module)
        >>> module["recalibrate"]([[0.1, 0.9]]).round(2).tolist()
        [[0.25, 0.75]]
        """
        from trueodds.calibrators.formula import write_numpy

        return write_numpy(self.calibration_map, self.k, self.describe())

    @checks_arguments
    def to_torch(self, *, logits: bool | None = None, sum_tolerance: float | None = None) -> Any:
        """Convert the calibrator to a PyTorch module, which computes `predict_proba` on any device with a gradient.

        Parameters
        ----------
        logits : bool, optional
            Whether the module takes logits; by default only if the calibrator was fitted on them (`module.logits`).
        sum_tolerance : float, optional
            Largest deviation of a row's sum from 1, as for `Predictions`.

        Returns
        -------
        torch.nn.Module
            A module with float64 buffers. InputError TO525 for a map without a formula, or if PyTorch is missing.
        """
        try:
            from trueodds.calibrators.torch import CalibrationModule
        except ImportError:
            fix = install_command("torch")
            raise InputError("TO525", "A calibrator as a module needs PyTorch.", "no torch", fix) from None
        return CalibrationModule(self.calibration_map, self.classes, logits, sum_tolerance)

    def to_dict(self) -> dict[str, Any]:
        """Return the calibrator as a dictionary that JSON can hold.

        Returns
        -------
        dict
            Schema, method, parameters, classes, rows, settings, notes and version, which is what `save` writes, and
            `named_parameters`: `parameters` of this object, by their symbols in the literature.
        """
        return self._saved_document() | {"named_parameters": json_files.strict_json(self.parameters)}

    def _saved_document(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "method": self.method,
            "parameters": self.calibration_map.to_dict(),
            "classes": list(self.classes),
            "n": self.n,
            "settings": json_files.strict_json(self.settings),
            "notes": [note.to_dict() for note in self.notes],
            "version": trueodds.__version__,
            "fingerprint": self.fingerprint,
        }

    def describe(self) -> str:
        """Describe the method, its parameters and the number of rows in one line.

        Returns
        -------
        str
            One line of text.
        """
        text = to_printable(f"{self.method} · {self.calibration_map.describe()} · n={self.n:,} · {self.k} classes")
        return text if self.report is None else f"{text} · {self.report.outcome_text}"

    def __repr__(self) -> str:
        return f"FittedCalibrator({self.describe()})"


_SCHEMA_PREFIX = "trueodds.calibrator/"
SCHEMA = f"{_SCHEMA_PREFIX}1"
# The keys of `FittedCalibrator._saved_document`. One that older files lack needs a default in `calibrator_from_dict`.
_DOCUMENT_KEYS = ("schema", "method", "parameters", "classes", "n", "settings", "notes", "version", "fingerprint")


def save_calibrator(calibrator: FittedCalibrator, path: str | os.PathLike[str]) -> None:
    """Write the calibrator to a file atomically: another process reads the old or the complete new file."""
    for name in calibrator.classes:
        if not isinstance(name, (str, int, float)) or name != name:
            raise InputError(
                "TO506",
                "Only class names that are text or numbers can be saved.",
                f"{name!r} of type {type(name).__name__}",
                "Pass ⟨classes=⟩ with the names as text.",
            )
    text = json.dumps(calibrator._saved_document(), allow_nan=False, indent=1)
    calibrator_from_dict(json.loads(text))  # a file that could not be read again is refused now
    json_files.write_text(path, text + "\n", "TO503")


def load(path: str | os.PathLike[str]) -> FittedCalibrator:
    """Load a calibrator from a JSON file that `FittedCalibrator.save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    FittedCalibrator
        The saved calibrator.

    Raises
    ------
    InputError
        TO503 for a file that is not a calibrator, TO504 for a later format, TO505 for an invalid or missing value.
    """
    return calibrator_from_dict(json_files.read_json(path, "TO503"))


def calibrator_from_dict(document: Any) -> FittedCalibrator:
    """Make a calibrator from the dictionary that `FittedCalibrator.to_dict` returns."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith(_SCHEMA_PREFIX):
        raise InputError("TO503", "This is not a saved calibrator.", f"schema {schema!r}", REFIT_HINT)
    if schema != SCHEMA:
        fix = "Install a newer version of trueodds, or fit and save it again."
        raise InputError("TO504", f"This version reads {SCHEMA}.", schema, fix)
    document = {"fingerprint": None, **document}  # which older files do not have
    document.pop("named_parameters", None)  # of `to_dict`: they repeat the parameters under other names
    check_keys(document, _DOCUMENT_KEYS, "the file")
    classes = read_class_names(document, "classes")
    hints = {"n": Count, "settings": dict, "parameters": dict, "version": str, "fingerprint": str | None}
    values = {key: read_value(key, document[key], hint) for key, hint in hints.items()}
    calibration_map = read_map(read_map_type("method", document["method"]), values["parameters"], len(classes))
    return FittedCalibrator(
        calibration_map,
        classes,
        values["n"],
        values["settings"],
        read_notes(document, "notes"),
        fingerprint=values["fingerprint"],
    )


def notes_on_groups(n_unknown: int, n: int) -> list[Note]:
    """Return the note on rows with a group or category that the fit did not have, of n rows."""
    if not n_unknown:
        return []
    text = (
        f"{n_unknown:,} of {n:,} rows have a group or category that the fit did not have. They get the overall shift"
        " and the terms that are known."
    )
    return [Note("TN550", text)]
