"""Display classes in scikit-learn's style, such as ReliabilityDisplay.from_predictions and .from_estimator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from trueodds.api.draw import draw
from trueodds.core.errors import InputError
from trueodds.core.signatures import checks_arguments
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array
from trueodds.data.predictions import Predictions, concatenate
from trueodds.diagrams import DIAGRAMS, PREDICTION_DIAGRAMS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.curve_smoother import is_supported
from trueodds.diagrams.table_columns import stack_tables


class Display:
    """Display object of a diagram in the style of scikit-learn.

    There is one class for each diagram of predictions, with its name: that of `reliability` is `ReliabilityDisplay`.

    Parameters
    ----------
    diagram : Diagram
        The computed diagram.

    Attributes
    ----------
    diagram : Diagram
        The computed diagram.
    ax_ : matplotlib.axes.Axes
        Axes of the drawing.
    figure_ : matplotlib.figure.Figure
        Figure of the drawing.

    Examples
    --------
    >>> from trueodds import ReliabilityDisplay
    >>> shown = ReliabilityDisplay.from_predictions([0, 1, 1], [0.2, 0.7, 0.9], bins=5)
    >>> shown.diagram.name, len(shown.figure_.axes)
    ('reliability', 1)
    """

    method: ClassVar[str]

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram

    @checks_arguments
    def plot(
        self,
        ax: Any = None,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Self:
        """Draw the diagram on `ax` or on a new figure.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        title : str or bool, optional
            A string replaces the headline. False or ``""`` removes the headline and the summary below it.
        figsize : (float, float), optional
            Width and height of the figure in inches.
        dpi : float, optional
            Resolution of the figure, in pixels per inch.
        legend : bool, optional
            Whether axes passed as `ax` get a legend. By default they get one if it covers no data.

        Returns
        -------
        Display
            The object itself, with `ax_` and `figure_`.
        """
        drawn = self.diagram.draw(ax, title=title, figsize=figsize, dpi=dpi, legend=legend)
        self.figure_ = drawn.figure if ax is not None else drawn
        self.ax_ = ax if ax is not None else self.figure_.axes[0]
        return self

    @classmethod
    @checks_arguments
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[Any, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        classes: Any = None,
        group: Any = None,
        lens: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw the diagram of outcomes and predicted probabilities.

        Parameters
        ----------
        y_true : array (n,) or (n, K)
            Labels or votes.
        y_prob : array (n,) or (n, K), or mapping
            Predicted probabilities. For diagrams of several models a mapping such as ``{"nb": P, "rf": Q}``, for epochs
            of a training ``{1: P, 2: Q}``.
        sample_weight : array (n,), optional
            Weights of the rows.
        classes : sequence, optional
            Names of the classes in the order of the columns.
        group : mapping of str to array (n,), optional
            Columns of subgroups, for the diagram `groups`.
        lens : str, Lens or callable, optional
            Which predicted probability is examined, as in `measure`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        **settings
            Settings of the diagram, and `title`, `figsize`, `dpi` and `legend`.

        Returns
        -------
        Display
            The drawn display.

        Raises
        ------
        InputError
            As for `Predictions` and `draw`.
        """
        if not isinstance(y_prob, Mapping):
            preds = Predictions(y_true, y_prob, weight=sample_weight, group=group, classes=classes, copy=False)
            return cls._draw(preds, lens, ax, settings)
        if not y_prob:
            fix = "For instance {'nb': P, 'rf': Q}."
            raise InputError("TO205", "A mapping of models must not be empty.", "an empty mapping", fix)
        models = {
            str(name): Predictions(y_true, prob, weight=sample_weight, group=group, classes=classes, copy=False)
            for name, prob in y_prob.items()
        }
        return cls._draw(models, lens, ax, settings)

    @classmethod
    @checks_arguments
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        group: Any = None,
        lens: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw the diagram of the probabilities that a fitted classifier predicts for X.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with `predict_proba`.
        X : array or data frame (n, d)
            Features.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Weights of the rows.
        group : mapping of str to array (n,), optional
            Columns of subgroups, for the diagram `groups`.
        lens : str, Lens or callable, optional
            Which predicted probability is examined, as in `measure`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        **settings
            Settings of the diagram, and `title`, `figsize`, `dpi` and `legend`.

        Returns
        -------
        Display
            The drawn display.

        Raises
        ------
        InputError
            As for `Predictions.from_estimator` and `draw`.
        """
        preds = Predictions.from_estimator(estimator, X, y, weight=sample_weight, group=group)
        return cls._draw(preds, lens, ax, settings)

    @classmethod
    @checks_arguments
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        lens: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw the diagram of the out-of-fold predictions of a cross-validation.

        Each row is predicted by the classifier of the fold that tested it, which was not fitted to the row. A
        `ReliabilityCurveDisplay` with one panel also draws the curve of each fold as a thin line. With the same
        bandwidth, the curve of all rows is the mean of these, weighted by the rows near each score.

        Parameters
        ----------
        cv_results : mapping
            What `cross_validate` returns with ``return_estimator=True`` and ``return_indices=True``.
        X : array or data frame (n, d)
            Features, as passed to `cross_validate`.
        y : array (n,)
            Labels, as passed to `cross_validate`.
        sample_weight : array (n,), optional
            Weights of the rows.
        lens : str, Lens or callable, optional
            Which predicted probability is examined, as in `measure`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.
        **settings
            Settings of the diagram, and `title`, `figsize`, `dpi` and `legend`.

        Returns
        -------
        Display
            The drawn display.

        Raises
        ------
        InputError
            TO107 if `X` or `y` has other rows, TO202 if `cv_results` lacks the classifiers or the indices, TO205 if a
            row is tested in several folds, a fold tests none, its fit failed, or the classifiers have different
            classes, and as for `draw`.

        Notes
        -----
        Bars and bands describe the noise of the rows. How much the classifiers of the folds differ is shown by their
        curves.
        """
        folds = predict_folds(cv_results, X, y, sample_weight)
        diagram = draw(concatenate(folds), cls.method, lens=lens, **settings)
        if cls.method == "reliability_curve" and len(diagram.panels["view"]) == 1:
            kernel = {} if settings.get("smoother") == "loess" else {"bandwidth": float(diagram.panels["bandwidth"][0])}
            curve_settings = settings | kernel | {"band": None}
            curves = [draw(fold, cls.method, lens=lens, **curve_settings).table for fold in folds]
            diagram = replace(diagram, table=stack_tables([diagram.table, fold_curves(curves)]))
        return cls(diagram).plot(ax)

    @classmethod
    def _draw(
        cls, preds: Predictions | Mapping[str, Predictions], lens: Any, ax: Any, settings: dict[str, Any]
    ) -> Self:
        """Compute the diagram and plot it on `ax` or on a new figure."""
        return cls(draw(preds, cls.method, lens=lens, **settings)).plot(ax)


def predict_folds(
    cv_results: Mapping[str, Any], X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> list[Predictions]:
    """Return the predictions of the test rows of each fold by its classifier; `Display.from_cv_results` has the errors.

    The arguments are those of `Display.from_cv_results`.
    """
    from sklearn.utils import _safe_indexing

    missing = [name for name in ("estimator", "indices") if name not in cv_results]
    if missing:
        fix = "Call cross_validate(…, return_estimator=True, return_indices=True)."
        raise InputError("TO202", f"cv_results needs {missing[0]!r}.", ", ".join(cv_results), fix)
    models, tested = cv_results["estimator"], cv_results["indices"]["test"]
    if empty := [fold for fold, rows in enumerate(tested) if not len(rows)]:
        fix = "Use a splitter whose folds all have rows, such as StratifiedKFold."
        raise InputError("TO205", "A fold has no rows that it tests.", f"none in fold {empty[0]}", fix)
    labels = as_array(y, "y")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    n_of_cv = 1 + max(int(np.max(rows)) for part in cv_results["indices"].values() for rows in part)
    if not n_rows == len(labels) >= n_of_cv:
        fix = "Pass the arrays that cross_validate got."
        got = f"{n_rows:,} rows of X and {len(labels):,} of y for {n_of_cv:,}"
        raise InputError("TO107", "X and y must have the rows of the cross-validation.", got, fix)
    if len(np.unique(np.concatenate(tested))) < sum(map(len, tested)):
        fix = "Use a splitter whose test folds do not overlap, such as StratifiedKFold."
        raise InputError("TO205", "A row is tested in several folds.", f"{len(tested)} folds", fix)
    if failed := [fold for fold, model in enumerate(models) if not hasattr(model, "classes_")]:
        fix = "Call cross_validate(…, error_score='raise') to see why."
        raise InputError("TO205", "The fit of a fold failed.", f"no classes_ in fold {failed[0]}", fix)
    if len({tuple(model.classes_) for model in models}) > 1:
        fix = "Use a splitter that keeps every class in every fold, such as StratifiedKFold."
        raise InputError("TO205", "The classifiers of the folds have different classes.", "", fix)
    weight = None if sample_weight is None else as_array(sample_weight, "sample_weight")
    if weight is not None and len(weight) != len(labels):
        got = f"shape {weight.shape} for {len(labels):,} rows"
        raise InputError("TO107", "sample_weight must have one value per row.", got, "Align it first.")
    return [
        Predictions.from_estimator(
            model, _safe_indexing(X, rows), labels[rows], weight=None if weight is None else weight[rows]
        )
        for model, rows in zip(models, tested, strict=True)
    ]


def fold_curves(tables: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the rows of a table with the curves of folds where enough rows contribute, as the part `fold`.

    `tables` are those of the reliability curve of each fold. The pieces of all curves are numbered in a row. A fold
    with too few rows for a curve has none.
    """
    parts, n_pieces = [], 0
    for table in tables:
        points = np.flatnonzero((table["part"] == "curve") & is_supported(table["effective"]))
        if not len(points):
            continue
        is_new = (np.diff(points, prepend=points[0] - 1) > 1) | (np.diff(table["piece"][points], prepend=-1) != 0)
        piece = n_pieces - 1 + np.cumsum(is_new)
        n_pieces = int(piece[-1]) + 1
        part = {name: column[points] for name, column in table.items()}
        parts.append(part | {"part": np.full(len(points), "fold", dtype=object), "piece": piece})
    return stack_tables(parts) if parts else {name: column[:0] for name, column in tables[0].items()}


# Names of the diagrams by the names of their display classes, such as "reliability" by "ReliabilityDisplay".
DIAGRAM_OF_DISPLAY = {
    "".join(word.capitalize() for word in name.split("_")) + "Display": name for name in PREDICTION_DIAGRAMS
}

# These declarations are for type checkers. `__getattr__` creates the classes on first use.
CalibrationBeltDisplay: type[Display]
ComparisonDisplay: type[Display]
ConfidenceHistogramDisplay: type[Display]
CorpDisplay: type[Display]
CumulativeDisplay: type[Display]
DecisionCurveDisplay: type[Display]
GroupsDisplay: type[Display]
LloPosteriorDisplay: type[Display]
MclloParametersDisplay: type[Display]
MurphyDisplay: type[Display]
RecalibrationLinesDisplay: type[Display]
ReliabilityCurveDisplay: type[Display]
ReliabilityDisplay: type[Display]
SelectiveRiskDisplay: type[Display]
SimplexDisplay: type[Display]
TetrahedronDisplay: type[Display]
TrainingDisplay: type[Display]


def __getattr__(name: str) -> type[Display]:
    """Return the display class of a diagram, which is created on first use."""
    if name not in DIAGRAM_OF_DISPLAY:
        if name.startswith("_"):
            raise AttributeError(name)
        fix = suggest_names(name, DIAGRAM_OF_DISPLAY)
        raise AttributeError(f"There is no display {name!r}. {fix}")
    diagram = DIAGRAM_OF_DISPLAY[name]
    recipe_docstring = DIAGRAMS.load(diagram).__doc__ or ""
    # The class has the docstring of the diagram without its examples, which do not use the class.
    docstring = re.split(r"^ *Examples\n *-{3,}$", recipe_docstring, flags=re.MULTILINE)[0].rstrip()
    display_class = type(name, (Display,), {"method": diagram, "__doc__": docstring})
    globals()[name] = display_class
    return display_class


def __dir__() -> list[str]:
    """Return all names, with those of display classes that have not been created yet, for completion in a prompt."""
    return sorted({*globals(), *DIAGRAM_OF_DISPLAY})
