"""Display classes in scikit-learn's style, such as ReliabilityDisplay.from_predictions and .from_estimator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from trueodds.api.draw import draw
from trueodds.core.errors import InputError
from trueodds.core.signatures import checks_arguments
from trueodds.core.suggestions import suggest_names
from trueodds.data.predictions import Predictions
from trueodds.diagrams import DIAGRAMS, PREDICTION_DIAGRAMS
from trueodds.diagrams.base import Diagram


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
    def _draw(
        cls, preds: Predictions | Mapping[str, Predictions], lens: Any, ax: Any, settings: dict[str, Any]
    ) -> Self:
        """Compute the diagram and plot it on `ax` or on a new figure."""
        return cls(draw(preds, cls.method, lens=lens, **settings)).plot(ax)


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
