"""Utility calibration error: the largest gap between expected and realized utility over intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import CHECKED_BY_CLASS, call_user_function
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_single_rows
from trueodds.estimators.costs import MAX_COST, Cost, Costs, are_costs, check_cost
from trueodds.lenses.ranked import rank_classes
from trueodds.lenses.view import View

UTILITY_TOLERANCE = 1e-12  # tolerance of equal expected utilities, relative to the largest payoff
MAX_DISTINCT_UTILITIES = 4096  # maximum number of expected utilities in draws; of more, neighbors are pooled
MIN_DISTINCT_UTILITIES = 256  # number of expected utilities up to which they are not pooled to save memory
MAX_CELL_OUTCOMES = 2**20  # maximum number of cells times outcomes in draws
MAX_DISTINCT_PAYOFFS = 64  # maximum number of distinct rows of payoffs with which rows are pooled into cells for draws


@dataclass(frozen=True)
class UtilityError(Estimator):
    r"""Utility calibration error (UC): largest gap between expected and realized utility over intervals.

    A user computes the expected utility of each row from its probabilities. The error is the largest total difference
    from the realized utility over any interval of expected utilities.

    Parameters
    ----------
    utility : str, sequence of K, sequence of such, or callable, default="top"
        "top", "top-5", "class:0", payoffs of the classes, or a function of P (n, K) that returns payoffs (n, K). "top"
        pays 1 if the top class is correct, "top-5" if the outcome is among the five largest probabilities. With several
        rows of payoffs the value is the largest error, and each is in `parts`.
    cost : table (actions, K) or callable, optional
        Costs of actions, instead of `utility`. The payoff is the negative cost of the action that is optimal under the
        probabilities (decision calibration). A callable of P may return (n, actions, K).

    Raises
    ------
    InputError
        TO203 if the utility is unknown. TO205 if the view holds cells of many rows or if the payoffs do not match the
        outcomes.

    Notes
    -----
    .. math:: \sup_{I} \Big| \tfrac1w \sum_{i:\, v(p_i) \in I} w_i \big(u(p_i, y_i) - v(p_i)\big) \Big|

    u is the payoff per class, v(p) = Σ_k u(p, k) p_k its expectation, and I an interval. The value includes the
    interval's share of the rows. It is `ecce_r` of the real-valued score v: of the confidence with "top", of one class
    with "class:2". If the value is small, a user who acts above a threshold of v gains little by any monotone change of
    v. Payoffs are not rescaled. The paper uses payoffs in [-1, 1], and values for such payoffs are comparable. Shapes:
    a joint view (n, m). A binary view is (1 − p, p).

    Units: those of the utility, in [0, max u − min u]; 0 is best.

    Bias: upward, about 1.6 sqrt(mean Var u / n) for a calibrated model, which `noise_floor` reports.

    Cost: O(nm + n log n), and O(cells · m) per draw with at most 4,096 cells that differ in v. Rows are required.
    Tallies are not supported.

    References
    ----------
    .. [1] Hegazy, Jordan & Dieuleveut (2025). arXiv 2510.25458.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([1, 2], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    >>> to.measure(preds, "utility", interval=None).value  # expected .5 and .6; y 0 and 1: ±.5/2, then .4/2
    0.25
    >>> error = to.measure(preds, "utility", utility=[0, 1, 2], interval=None)
    >>> round(error.value, 4)  # expected .7 and 1.4; y 1 and 2: (.3 + .6) / 2
    0.45
    """

    name: ClassVar[str] = "utility"
    lower_bound: ClassVar[float] = 0.0
    lens: ClassVar[str | None] = "canonical"
    interval: ClassVar[str | None] = "residual-norm"
    needs_rows: ClassVar[bool] = True
    utility: Annotated[Utility, CHECKED_BY_CLASS] = "top"
    cost: Annotated[Cost | None, CHECKED_BY_CLASS] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "utility", check_utility(self.utility))
        if self.cost is not None:
            if self.utility != "top":
                raise InputError(
                    "TO203",
                    "cost and utility exclude each other.",
                    f"utility={self.utility!r}, cost=…",
                    "Give one of them.",
                )
            object.__setattr__(self, "cost", check_cost(self.cost))

    def value(self, view: View) -> float:
        return max(expectation.value() for expectation in self._expectations(view).values())

    def parts(self, view: View) -> dict[str, float]:
        """Gap of each utility, if there are several."""
        expectations = self._expectations(view)
        return (
            {name: expectation.value() for name, expectation in expectations.items()} if len(expectations) > 1 else {}
        )

    def cell_statistic(self, view: View) -> CellStatistic | None:
        """The error as a function of sums per cell; None if rows and outcomes exceed the memory limit."""
        expectations = list(self._expectations(view).values())
        pooled_rows = expectations[0].pool_rows() if len(expectations) == 1 else None
        if pooled_rows is not None:
            return UtilityCells(pooled_rows.index, pooled_rows.representative, [(expectations[0], pooled_rows.rank)])
        row = np.arange(len(view.w))
        if len(row) * expectations[0].payoffs.shape[-1] > 4 * MAX_CELL_OUTCOMES:
            return None
        return UtilityCells(row, row, [(expectation, expectation.rank) for expectation in expectations])

    def settings_used(self, view: View) -> dict[str, Any]:
        payoffs = [expectation.payoffs for expectation in self._expectations(view).values()]
        setting_name = "cost" if self.cost is not None else "utility"
        setting = getattr(self, setting_name)
        return {
            setting_name: getattr(setting, "__name__", "a function") if callable(setting) else setting,
            "payoffs": [float(min(table.min() for table in payoffs)), float(max(table.max() for table in payoffs))],
        }

    def notes(self, view: View) -> list[Note]:
        if any(
            (expectation.payoffs != expectation.payoffs[..., :1]).any()
            for expectation in self._expectations(view).values()
        ):
            return []
        return [Note("TN134", "The utility is the same for all outcomes, so the error is 0.")]

    def _expectations(self, view: View) -> dict[str, ExpectedUtility]:
        """The expected utility of each row, by the name of the utility."""
        require_single_rows(view, self.name)
        P = view.P
        payoffs = resolve_payoffs(self.utility, self.cost, P, view, self.name)
        return {name: ExpectedUtility(view, P, table) for name, table in payoffs.items()}


@dataclass(frozen=True)
class PooledRows:
    """Cells of rows with equal payoffs and similar expected utility."""

    index: Array  # (n,) cell of each row
    representative: Array  # (cells,) a row of each cell
    rank: Array  # (cells,) rank of each cell by expected utility; cells with different payoffs may share a rank


class ExpectedUtility:
    """Expected utility of the rows of a view, for one utility.

    `payoffs` are those of the outcomes, (m,) or by row (n, m). `rank` (n,) orders the rows by expected utility, from 0.
    Rows of equal expected utility share a rank, and the rank of rows of weight 0 is ignored.
    """

    def __init__(self, view: View, P: Array, payoffs: Array) -> None:
        self.view, self.payoffs = view, payoffs
        v = P @ payoffs if payoffs.ndim == 1 else np.einsum("nk,nk->n", P, payoffs)
        rows = np.flatnonzero(view.w > 0)
        order = rows[np.argsort(v[rows], kind="stable")]
        # Mathematically equal expectations may differ in their last digits; they count as one score.
        is_new = np.diff(v[order]) > UTILITY_TOLERANCE * max(float(np.abs(payoffs).max()), np.finfo(float).tiny)
        self.rank = np.zeros(len(v), dtype=np.int64)
        self.rank[order] = np.concatenate(([0], np.cumsum(is_new)))

    def value(self) -> float:
        """The range of the cumulative sums of realized minus expected utility, in order of the expectation."""
        view = self.view
        residual = self.residual(view.p.astype(np.float64, copy=False), view.y)
        return float(_cumulative_range(np.bincount(self.rank, view.w * residual)) / view.total)

    def residual(self, wp: Array, wy: Array, rows: Array | slice = slice(None)) -> Array:
        """Return realized minus expected utility of rows, (…, n), from their predicted and observed outcomes.

        wp and wy are Σwp and Σwy of the event, (…, n), or of each of m outcomes, (…, n, m). `rows` selects the rows of
        the payoffs.
        """
        payoffs = self.payoffs if self.payoffs.ndim == 1 else self.payoffs[rows]
        if not self.view.joint:
            payoff_difference = payoffs[..., 1].astype(np.float64) - payoffs[..., 0]
            return np.asarray(payoff_difference * (wy - wp))
        payoffs = np.broadcast_to(payoffs.astype(np.float64, copy=False), (wy.shape[-2], wy.shape[-1]))
        return np.asarray(np.einsum("...nk,nk->...n", wy, payoffs) - np.einsum("...nk,nk->...n", wp, payoffs))

    def pool_rows(self) -> PooledRows | None:
        """Pool rows with equal payoffs and similar expected utility; None if there are too many distinct payoffs.

        Ranks are pooled into groups of about equal weight if there are too many, and into fewer and fewer groups until
        the sums of the cells fit into memory.
        """
        payoff_number = np.zeros(len(self.rank), dtype=np.int64)
        if self.payoffs.ndim == 2:
            distinct_payoffs, payoff_number = np.unique(self.payoffs, axis=0, return_inverse=True)
            payoff_number = payoff_number.reshape(-1)
            if len(distinct_payoffs) > MAX_DISTINCT_PAYOFFS:
                return None
        mass = np.bincount(self.rank, self.view.w)
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        n_groups = min(len(mass), MAX_DISTINCT_UTILITIES)
        while True:
            group_of_rank = np.arange(len(mass)) if n_groups == len(mass) else (middle * n_groups).astype(np.int64)
            group = group_of_rank[self.rank]
            _, representative, index = np.unique(
                group * MAX_DISTINCT_PAYOFFS + payoff_number, return_index=True, return_inverse=True
            )
            fits_memory = len(representative) * self.payoffs.shape[-1] <= MAX_CELL_OUTCOMES
            if fits_memory or n_groups <= MIN_DISTINCT_UTILITIES:
                return PooledRows(index.reshape(-1), representative, group[representative])
            n_groups //= 2


class UtilityCells(CellStatistic):
    """Cell statistic of the error for one or several utilities of a view.

    Parameters
    ----------
    index : ndarray of shape (n,)
        Cell of each row.
    representative : ndarray of shape (cells,)
        A row of each cell, which has the payoffs of all its rows.
    expectations_with_ranks : list of tuple
        For each utility, the expected utility of the rows, and the rank of each cell by it, (cells,).
    """

    def __init__(
        self, index: Array, representative: Array, expectations_with_ranks: list[tuple[ExpectedUtility, Array]]
    ) -> None:
        self.index, self.representative, self.size = index, representative, len(representative)
        self.expectations = [expectation for expectation, _ in expectations_with_ranks]
        orders = [np.argsort(rank, kind="stable") for _, rank in expectations_with_ranks]
        segment_ends = [
            np.flatnonzero(np.diff(rank[order], append=-1))
            for (_, rank), order in zip(expectations_with_ranks, orders, strict=True)
        ]
        # For each utility the cells in increasing order of their ranks, and the positions at which a rank ends.
        self.orders_and_segment_ends = list(zip(orders, segment_ends, strict=True))

    def value(self) -> float:
        return max(expectation.value() for expectation in self.expectations)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        total_weight = w.sum(axis=-1)[..., None]
        return self._largest_gap([residual / total_weight for residual in self._residuals(wp, wy)])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """Return the seminorm of the difference between drawn and observed residuals."""
        dw, dwp, dwy = draws
        drawn_weight = dw.sum(axis=-1)[..., None]
        pairs = zip(self._residuals(dwp, dwy), self._residuals(wp, wy), strict=True)
        return self._largest_gap(
            [drawn_residual / drawn_weight - observed_residual / w.sum() for drawn_residual, observed_residual in pairs]
        )

    def _residuals(self, wp: Array, wy: Array) -> list[Array]:
        """Realized minus expected utility of each cell, (…, cells), for each utility."""
        return [expectation.residual(wp, wy, self.representative) for expectation in self.expectations]

    def _largest_gap(self, residuals: list[Array]) -> Array:
        """Largest gap over all utilities, (…,), from their residuals by cell (…, cells)."""
        ranges = [
            _cumulative_range(np.cumsum(residual[..., order], axis=-1)[..., segment_ends], summed=True)
            for residual, (order, segment_ends) in zip(residuals, self.orders_and_segment_ends, strict=True)
        ]
        return np.asarray(np.max(ranges, axis=0))


def _cumulative_range(x: Array, *, summed: bool = False) -> Array:
    """Largest minus smallest cumulative sum (…) of x (…, m), including the start at 0.

    With `summed` the entries of x are the cumulative sums already.
    """
    sums = x if summed else np.cumsum(x, axis=-1)
    return np.asarray(np.maximum(sums.max(axis=-1), 0.0) - np.minimum(sums.min(axis=-1), 0.0))


Utility = str | Sequence[float] | Sequence[Sequence[float]] | Array | Callable[[Array], Array]

NAMED_UTILITY = re.compile("top(-[1-9][0-9]{0,14})?|class:[0-9]{1,15}")


def check_utility(utility: Utility) -> Any:
    """Validate a utility, and return it as a setting: tables of payoffs as nested tuples, which are comparable."""
    if callable(utility) or (isinstance(utility, str) and NAMED_UTILITY.fullmatch(utility)):
        return utility
    try:
        table = np.asarray(utility, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim not in (1, 2) or table.shape[-1] < 2 or not len(table) or not are_costs(table):
        raise InputError(
            "TO203",
            "The utility has an invalid form.",
            describe(utility),
            f"Use 'top', 'top-5', 'class:0', a payoff of at most {MAX_COST:g} per class, rows of such payoffs, or a"
            " function of P (n, K).",
        )
    return tuple(table.tolist()) if table.ndim == 1 else tuple(map(tuple, table.tolist()))


def resolve_payoffs(utility: Any, cost: Cost | None, P: Array, view: View, name: str) -> dict[str, Array]:
    """Return the payoff of each outcome, by the name of the utility: (m,) if it is the same for every row, else (n, m).

    P (n, m) are the probabilities of the view, and `name` is the name of the estimator.
    """
    m = P.shape[1]
    if cost is not None:
        costs = Costs(cost, P, view, name)
        return {"cost": -costs.outcome_costs(costs.optimal_actions(P))}
    if callable(utility):
        values = np.asarray(call_user_function("utility", utility, P), dtype=np.float64)
        if values.shape != P.shape or not are_costs(values):
            remedy = f"Return finite payoffs {P.shape} of at most {MAX_COST:g}."
            raise _payoff_error(view, m, f"a function that returns shape {values.shape}", remedy)
        return {"utility": values}
    if isinstance(utility, str):
        return {utility: _named_payoffs(utility, P, view)}
    table = np.asarray(utility)
    if table.shape[-1] != m:
        raise _payoff_error(view, m, f"{table.shape[-1]} payoffs", f"Give {m}, one per class.")
    if table.ndim == 1:
        return {"utility": table}
    return {f"utility {number}": row for number, row in enumerate(table)}


def _named_payoffs(utility: str, P: Array, view: View) -> Array:
    """Payoffs of "top", "top-k" or "class:c", (m,) or (n, m)."""
    m = P.shape[1]
    if utility.startswith("class:"):
        c = int(utility.removeprefix("class:"))
        if c >= m:
            raise _payoff_error(view, m, describe(utility), f"Classes are numbered from 0 to {m - 1}.")
        return np.eye(m)[c]
    k = int(utility.removeprefix("top-")) if "-" in utility else 1
    if k >= m:
        return np.ones(m)
    if k == 1:
        return np.arange(m) == P.argmax(axis=1)[:, None]
    is_in_top_k = np.zeros(P.shape, dtype=bool)
    np.put_along_axis(is_in_top_k, rank_classes(P)[:, :k], True, axis=1)
    return is_in_top_k


def _payoff_error(view: View, m: int, received: str, remedy: str) -> InputError:
    """Error for payoffs that do not match the m outcomes of the view."""
    return InputError(
        "TO205", f"A utility needs a payoff for each of the {m} outcomes of the lens {view.name}.", received, remedy
    )
