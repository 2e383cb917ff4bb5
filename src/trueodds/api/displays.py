"""Display classes in scikit-learn's style, such as ReliabilityDisplay.from_predictions and .from_estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from trueodds.api.draw import draw
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.data.predictions import Predictions
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams.base import Diagram


class Display:
    """A drawn diagram in the manner of scikit-learn: `diagram`, `ax_` and `figure_`.

    One class for each diagram, named for it: `reliability` has `ReliabilityDisplay`.

    >>> from trueodds import ReliabilityDisplay
    >>> shown = ReliabilityDisplay.from_predictions([0, 1, 1], [0.2, 0.7, 0.9], bins=5)
    >>> shown.diagram.name, len(shown.figure_.axes)
    ('reliability', 1)
    """

    method: ClassVar[str]

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram

    def plot(
        self,
        ax: Any = None,
        *,
        title: str | bool | None = None,
        figsize: tuple[float, float] | None = None,
        dpi: float | None = None,
        legend: bool | None = None,
    ) -> Self:
        """Draw it as `diagram.draw` does, on `ax` or on a new figure; sets `ax_` and `figure_`."""
        drawn = self.diagram.draw(ax, title=title, figsize=figsize, dpi=dpi, legend=legend)
        self.figure_ = drawn.figure if ax is not None else drawn
        self.ax_ = ax if ax is not None else self.figure_.axes[0]
        return self

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike | Mapping[Any, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        classes: Any = None,
        lens: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw outcomes and probabilities, (n,) or (n, K); the diagram's settings, `title` and such are keywords.

        For diagrams of several models `y_prob` is a mapping, `{"nb": P, "rf": Q}`, of epochs `{1: P, 2: Q}`.
        Raises what `Predictions` and `trueodds.draw` raise.
        """
        if not isinstance(y_prob, Mapping):
            return cls._of(Predictions(y_true, y_prob, weight=sample_weight, classes=classes), lens, ax, settings)
        if not y_prob:
            fix = "For instance {'nb': P, 'rf': Q}."
            raise InputError("TO205", "A mapping of models holds at least one.", "an empty mapping", fix)
        models = {
            str(name): Predictions(y_true, prob, weight=sample_weight, classes=classes) for name, prob in y_prob.items()
        }
        return cls._of(models, lens, ax, settings)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        lens: Any = None,
        ax: Any = None,
        **settings: Any,
    ) -> Self:
        """Draw what a fitted classifier says of X, beside y."""
        return cls._of(Predictions.from_estimator(estimator, X, y, weight=sample_weight), lens, ax, settings)

    @classmethod
    def _of(cls, preds: Predictions | Mapping[str, Predictions], lens: Any, ax: Any, settings: dict[str, Any]) -> Self:
        return cls(draw(preds, cls.method, lens=lens, **settings)).plot(ax)


NAMES = {"".join(word.capitalize() for word in name.split("_")) + "Display": name for name in DIAGRAMS.names()}


def __getattr__(name: str) -> type[Display]:
    """The display of a diagram; made once."""
    if name not in NAMES:
        if name.startswith("_"):
            raise AttributeError(name)
        fix = suggest_names(name, NAMES)
        raise AttributeError(f"There is no display {name!r}. {fix}")
    # The diagram's own example calls the diagram, with names that stand in its module.
    docstring = (DIAGRAMS.load(NAMES[name]).__doc__ or "").partition(">>>")[0].rstrip()
    display_class = type(name, (Display,), {"method": NAMES[name], "__doc__": docstring})
    globals()[name] = display_class
    return display_class


def __dir__() -> list[str]:
    """All names, also of displays that are not made yet, for a prompt that completes them."""
    return sorted({*globals(), *NAMES})
