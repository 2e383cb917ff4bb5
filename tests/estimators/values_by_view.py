"""Value of an estimator over all views of a lens, and by view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trueodds.estimators.base import Estimator, aggregate_values, aggregation_weights
from trueodds.lenses.view import View


def measure_views(
    estimator: Estimator, views: Sequence[View], aggregate: str = "mean"
) -> tuple[float, Mapping[str, float]]:
    """The value over all views, and its value by view if there are several."""
    values = estimator.values(views)
    if len(views) == 1:
        return float(values[0]), {}
    values_by_view = {view.name: float(value) for view, value in zip(views, values, strict=True)}
    return float(aggregate_values(values, aggregation_weights(views, aggregate), aggregate)), values_by_view
