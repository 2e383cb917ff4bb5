"""Multicalibration: correct groups and features by boosting the log odds with small trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from trueodds.calibrators._glm.log_probabilities import log_ratio, probability_pair
from trueodds.calibrators._groups.group_repair import (
    BinaryRows,
    Grouping,
    GroupRepair,
    confirm_repair,
    refuse_identifiers,
)
from trueodds.calibrators._groups.rows_with_columns import (
    FeatureBins,
    RowsWithColumns,
    bins_of_categories,
    bins_of_numbers,
    check_features,
    feature_names,
    find_levels,
    select_columns,
    split_columns,
)
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.cross_validation import stratified_folds, stratified_holdout
from trueodds.calibrators.group_shift import (
    GroupRepairSpec,
    GroupShiftMap,
    check_column_names,
    find_groupings,
    fit_shifts,
    group_columns,
    make_shift_map,
    shift_predictor,
)
from trueodds.calibrators.saved_parameters import Numbers, Saved, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError
from trueodds.core.rng import as_generator
from trueodds.core.settings import CHECKED_BY_CLASS, Range
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

# Of a tree; the docstring of `multicalibrated` states the first four.
_LEARNING_RATE = 0.15
_MAX_LEAVES = 5
_MIN_ROWS_PER_LEAF = 20
_RIDGE = 1.0  # added to the information of a leaf
_CATEGORY_RIDGE = 11.0  # added to the information of a category when categories are sorted by their scores


class Split(Saved):
    """Rows of a leaf that are not in the left bins of a feature go to a new leaf, the next number."""

    leaf: Annotated[int, Range(0, _MAX_LEAVES)]
    feature: Annotated[int, Range(0)]  # position among the features
    left: Annotated[Array, Numbers(0, 2**31, kind=int)]  # bins that stay in the leaf


class BoostedTree(Saved):
    """A regression tree, which adds a value to the log odds of each row."""

    splits: tuple[Split, ...]
    values: Annotated[Array, Numbers(-1e3, 1e3)]  # of the leaves

    def predict(self, bins: Array) -> Array:
        """The value of each row, (n,), from the bins (features, n)."""
        leaf = np.zeros(bins.shape[1], dtype=np.int64)
        for new_leaf, split in enumerate(self.splits, start=1):
            leaf[(leaf == split.leaf) & ~_are_in(bins[split.feature], split.left)] = new_leaf
        return np.asarray(self.values[leaf])


def _are_in(bins: Array, chosen: Array) -> Array:
    """Whether each bin is among the chosen ones."""
    is_chosen = np.zeros(max(int(bins.max(initial=0)), int(chosen.max())) + 1, dtype=bool)
    is_chosen[chosen] = True
    return is_chosen[bins]


class BinnedRows(NamedTuple):
    """Rows with binned features."""

    bins: Array  # (features, n) int64
    n_bins: Array  # (features,)
    is_category: Array  # (features,) whether the bins of a feature have no order
    offset: Array  # (n,) log odds before boosting
    y: Array  # (n,)
    w: Array  # (n,)

    def select(self, rows: Array) -> BinnedRows:
        return self._replace(
            bins=np.ascontiguousarray(self.bins[:, rows]), offset=self.offset[rows], y=self.y[rows], w=self.w[rows]
        )


class _Leaf(NamedTuple):
    """A leaf that may be split: its rows, sums by bin (3, features, bins) of score, information and rows, and split."""

    rows: Array
    sums: Array
    gain: float
    feature: int
    left: Array  # bins


def fit_tree(data: BinnedRows, log_odds: Array) -> BoostedTree:
    """Fit a tree to the scores y − q: the leaf with the largest gain is split first."""
    q = expit(log_odds)
    score, information = data.w * (data.y - q), data.w * q * (1 - q)
    n_features, width = len(data.n_bins), int(data.n_bins.max())

    def sums_of(rows: Array) -> Array:
        sums = np.empty((3, n_features, width))
        score_of_row, information_of_row = score[rows], information[rows]
        for f in range(n_features):
            bins = data.bins[f, rows]
            sums[0, f] = np.bincount(bins, score_of_row, width)
            sums[1, f] = np.bincount(bins, information_of_row, width)
            sums[2, f] = np.bincount(bins, minlength=width)
        return sums

    root = np.arange(len(q))
    leaves, splits = [_best_split(data, root, sums_of(root))], []
    while len(leaves) < _MAX_LEAVES:
        i = int(np.argmax([leaf.gain for leaf in leaves]))
        leaf = leaves[i]
        if leaf.gain <= 0:
            break
        is_left = _are_in(data.bins[leaf.feature, leaf.rows], leaf.left)
        left, right = leaf.rows[is_left], leaf.rows[~is_left]
        # The sums of the smaller part are computed, those of the larger one are the difference.
        smaller = sums_of(left if len(left) <= len(right) else right)
        left_sums = smaller if len(left) <= len(right) else leaf.sums - smaller
        splits.append(Split(i, leaf.feature, leaf.left))
        leaves[i] = _best_split(data, left, left_sums)
        leaves.append(_best_split(data, right, leaf.sums - left_sums))
    totals = [leaf.sums[:2, 0].sum(axis=1) for leaf in leaves]  # the bins of the first feature contain all rows
    values = np.array([_LEARNING_RATE * score / (information + _RIDGE) for score, information in totals])
    return BoostedTree(tuple(splits), values)


def _best_split(data: BinnedRows, rows: Array, sums: Array) -> _Leaf:
    """The leaf with its best split; a gain of 0 if there is none."""
    score, information, _ = sums
    bin_order = np.broadcast_to(np.arange(score.shape[1]), score.shape)
    order = np.argsort(
        np.where(data.is_category[:, None], score / (information + _CATEGORY_RIDGE), bin_order), axis=1, kind="stable"
    )
    left = np.cumsum(np.take_along_axis(sums, order[None], axis=2), axis=2)
    total = left[:, :, -1:]
    right = total - left
    gain = left[0] ** 2 / (left[1] + _RIDGE) + right[0] ** 2 / (right[1] + _RIDGE) - total[0] ** 2 / (total[1] + _RIDGE)
    gain[(np.minimum(left[2], right[2]) < _MIN_ROWS_PER_LEAF) | ~np.isfinite(gain)] = 0.0
    feature, position = np.unravel_index(int(gain.argmax()), gain.shape)
    bins = order[feature, : position + 1]
    return _Leaf(rows, sums, float(gain[feature, position]), int(feature), np.sort(bins[bins < data.n_bins[feature]]))


def boost(data: BinnedRows, n_trees: int) -> tuple[BoostedTree, ...]:
    """Fit this number of trees, each to the scores that the trees before it leave."""
    log_odds, trees = data.offset.copy(), []
    for _ in range(n_trees):
        trees.append(fit_tree(data, log_odds))
        log_odds += trees[-1].predict(data.bins)
    return tuple(trees)


def predict_trees(trees: Sequence[BoostedTree], bins: Array) -> Array:
    """Sum of the values of all trees, (n,)."""
    total = np.zeros(bins.shape[1])
    for tree in trees:
        total += tree.predict(bins)
    return total


# Of the number of trees: the search stops if so many more trees do not reduce the held-out loss, and at the maximum.
_PATIENCE, _MAX_TREES = 20, 500
_MIN_ROWS_FOR_HOLDOUT, _HELD_OUT, _FOLDS = 20_000, 0.2, 5  # from so many rows on, one holdout instead of folds
_MIN_ROWS = 40  # below which no tree is fitted
_SCORE = "log odds"  # name of the first feature


class MulticalibratedMap(CalibrationMap):
    """The log odds after the shifts of `start`, plus the values of all trees."""

    takes_logs = True
    start: GroupShiftMap
    features: tuple[FeatureBins, ...]  # the first is the log odds of the input
    trees: tuple[BoostedTree, ...]

    @property
    def required_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        own = [feature.name for feature in self.features[1:]]
        return tuple(dict.fromkeys([*self.start.required_columns, *own]))

    def apply(self, P: Any) -> Array:
        """Both probabilities computed separately, so that small ones keep their digits."""
        probabilities, columns = split_columns(P)
        columns = select_columns(columns, self.required_columns)
        eta = log_ratio(self.start.apply(P), 0.0)
        if self.trees:
            bins = bin_features(self.features, log_ratio(probabilities, 0.0), columns)
            eta = eta + predict_trees(self.trees, bins)
        return probability_pair(eta)

    def count_unknown(self, columns: Mapping[str, Array]) -> int:
        is_unknown = [factor.positions_of_rows(columns) < 0 for factor in self.start.factors]
        is_unknown += [f.bins_of(columns[f.name]) == f.n_bins - 1 for f in self.features[1:] if f.labels]
        return int(np.any(is_unknown, axis=0).sum()) if is_unknown else 0

    def describe(self) -> str:
        """The start, and the number of trees and features."""
        trees = f", {len(self.trees)} trees of {len(self.features) - 1} features" if self.trees else ""
        return f"{self.start.describe()}{trees}"

    def check_saved(self, k: int) -> None:
        if k != 2:
            raise invalid_value_error("classes", "two names", k)
        for tree in self.trees:
            if len(tree.values) != len(tree.splits) + 1:
                n_leaves = len(tree.splits) + 1
                raise invalid_value_error("values", f"{n_leaves} numbers, one per leaf", tree.values.tolist())
            for i, split in enumerate(tree.splits):  # split i finds the leaves 0 to i
                if split.leaf > i:
                    raise invalid_value_error("leaf", f"at most {i} in split {i}", split.leaf)
                if split.feature >= len(self.features):
                    raise invalid_value_error("feature", f"a number below {len(self.features)}", split.feature)


class MulticalibratedSpec(GroupRepairSpec, eq=False):
    r"""Multicalibration by boosting: corrects groups, features and the score, wherever held-out rows gain.

    For two classes. Small trees on the group columns, the `features` and the log odds of the input correct subgroups
    that nobody has declared. The result is used only if held-out rows confirm it over the overall shift alone.

    Parameters
    ----------
    features : data frame or mapping of name to array-like, optional
        Features of the rows: numbers, of which NaN are missing and have a bin of their own, or texts, which are
        categories, at most 1,000. Or names of group columns, which are then features.
    confirm : bool, default=True
        Whether the repair is used only if it is confirmed; otherwise the overall shift alone is used, or the shifts of
        groups if these are confirmed.

    See Also
    --------
    group_shift : Shifts of declared groups only, which start the boosting if they are confirmed.

    Notes
    -----
    Each tree is fitted to the scores y − q by best-first splits into at most five leaves of 20 rows or more, on up to
    64 edges per number: half at quantiles of the rows, half at quantiles of the distinct values. A leaf adds
    :math:`0.15 \sum (y - q) / (\sum q (1 - q) + 1)` to the log odds. The number of trees minimizes the held-out log
    loss, by five folds, or by one holdout of 20 % from 20,000 rows on; 0 trees are possible. An unknown category has a
    bin of its own. In the confirmation, the number of trees is chosen again without each fold, by a holdout.

    Cost: O(n · features) per tree, about 6 times the number of trees, and as many again for the confirmation.

    References
    ----------
    .. [1] Hébert-Johnson et al. (2018). Multicalibration.
    .. [2] Tax et al. (2025). MCGrad.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 80, 2000), np.full(2000, 0.5)
    >>> y = rng.random(2000) < np.where(age > 50, 0.7, 0.3)
    >>> rows = RowsWithColumns(np.stack([1 - p, p], axis=1), {"age": age})
    >>> fitted = MulticalibratedSpec(features=["age"], columns=()).fit(rows, np.eye(2)[y.astype(int)], np.ones(2000))
    >>> fitted.apply(RowsWithColumns(np.full((2, 2), 0.5), {"age": np.array([30.0, 70.0])}))[:, 1].round(1).tolist()
    [0.3, 0.7]
    """

    name, map_type = "multicalibrated", MulticalibratedMap
    exemptions = dict.fromkeys(("row order", "weights", "class order"), "folds are drawn in the order of the rows")
    features: Annotated[Any, CHECKED_BY_CLASS] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._feature_names()

    def settings(self) -> dict[str, Any]:
        """The settings as JSON values, with the names of features instead of their rows."""
        return {**super().settings(), "features": list(self._feature_names()) or None}

    def _feature_names(self) -> tuple[str, ...]:
        """Names of the features; raises TO203 for what is no list of names, data frame or mapping."""
        if self.features is None or isinstance(self.features, (str, list, tuple)):
            return check_column_names("features", self.features) or ()
        return feature_names(self.features)

    def with_columns(self, P: Any, preds: Predictions) -> RowsWithColumns:
        are_named = isinstance(self.features, (str, list, tuple))  # group columns that are features
        given = select_columns(preds.group, self._feature_names()) if are_named else self.features
        features = check_features(given, preds.n)
        groups = {name: column for name, column in preds.group.items() if not (are_named and name in features)}
        if groups or not features:
            groups = group_columns(groups, self.columns)
        if clash := [name for name in features if name in groups]:
            fix = "Rename one of them, or leave it out of features: groups are features too."
            raise InputError("TO518", "A feature has the name of a group column.", clash[0], fix)
        return RowsWithColumns(P, groups | features)

    def fit_with_report(
        self, P: Any, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[MulticalibratedMap, GroupRepair | None]:
        """Fit the map, and confirm it unless the model was trained on these rows."""
        P, columns = split_columns(P)
        names = self._feature_names()
        groups = {name: column for name, column in columns.items() if name not in names}
        groups = select_columns(groups, tuple(groups) if self.columns is None else self.columns)
        groupings = find_groupings(groups, self.crossings)
        refuse_identifiers(groupings)
        rows, rng = BinaryRows(log_ratio(P, self.min_prob), Y[:, 1], w, cluster), as_generator(self.rng)
        start_groupings = groupings  # those whose shifts start the boosting
        if self.confirm and groupings:
            predictor = shift_predictor(rows, groupings)
            start_report = confirm_repair(rows, groupings, predictor, alpha=self.alpha, rng=rng)
            start_groupings = groupings if start_report.confirmed else ()
        binned = {name: bins_of_categories(name, column) for name, column in groups.items()}
        for name in names:
            x = columns[name]
            binned[name] = bins_of_numbers(name, x) if x.dtype.kind == "f" else bins_of_categories(name, x)
        features = (bins_of_numbers(_SCORE, rows.log_odds), *binned.values())
        repair = _Repair(rows, start_groupings, features, bin_features(features, rows.log_odds, columns), rng)
        everything = np.arange(len(Y))
        categories = [feature.name for feature in features[1:] if feature.labels and feature.name in names]
        checked_groupings = [*groupings, *(Grouping((name,), find_levels([columns[name]])) for name in categories)]
        report = None
        if self.confirm:
            report = confirm_repair(rows, checked_groupings, repair.fit_and_predict, alpha=self.alpha, rng=rng)
        if trained_on_rows or (report is not None and not report.confirmed):
            fitted = fit_shifts(rows, [levels for _, levels in start_groupings])
            return MulticalibratedMap(
                make_shift_map(fitted, () if trained_on_rows else start_groupings), (), ()
            ), report
        start, trees = repair.fit(everything, thorough=True)
        return MulticalibratedMap(start, features if trees else (), trees), report


class _Repair:
    """Fits shifts and trees to some of the rows."""

    def __init__(
        self, rows: BinaryRows, groupings: Sequence[Grouping], features: Sequence[FeatureBins], bins: Array, rng: Any
    ) -> None:
        self.rows, self.groupings, self.bins, self.rng = rows, groupings, bins, rng
        self.n_bins = np.array([feature.n_bins for feature in features])
        self.is_category = np.array([bool(feature.labels) for feature in features])

    def fit(self, train: Array, *, thorough: bool) -> tuple[GroupShiftMap, tuple[BoostedTree, ...]]:
        """Fit to the rows `train`; if not `thorough`, a single holdout determines the number of trees."""
        shifts, data, cluster = self._start(train, train)
        n_trees = self._choose_number(data, cluster, thorough=thorough) if len(train) >= _MIN_ROWS else 0
        return shifts, boost(data, n_trees)

    def fit_and_predict(self, train: Array, test: Array) -> tuple[Array, Array]:
        """Log odds of the rows `test` with the overall shift alone, and with the repair, by a fit to `train`."""
        _, trees = self.fit(train, thorough=False)
        _, data, _ = self._start(train, test)
        overall = fit_shifts(self.rows.select(train), ()).overall
        return self.rows.log_odds[test] + overall, data.offset + predict_trees(trees, data.bins)

    def _start(self, train: Array, rows: Array) -> tuple[GroupShiftMap, BinnedRows, Array | None]:
        """Shifts of groups fitted to `train`, and the data of `rows` with them as offset; without groups no shift."""
        levels = [grouping.levels for grouping in self.groupings]
        own = self.rows.select(rows)
        if levels:
            fitted = fit_shifts(self.rows.select(train), [level.select(train) for level in levels])
            start = make_shift_map(fitted, self.groupings)
            offset = own.log_odds + fitted.total_shifts([level.select(rows) for level in levels])
        else:
            start, offset = GroupShiftMap(0.0, ()), own.log_odds
        data = BinnedRows(
            np.ascontiguousarray(self.bins[:, rows]), self.n_bins, self.is_category, np.asarray(offset), own.y, own.w
        )
        return start, data, own.cluster

    def _choose_number(self, data: BinnedRows, cluster: Array | None, *, thorough: bool) -> int:
        """The number of trees with the smallest held-out log loss."""
        Y = np.stack([data.offset < 0, data.offset >= 0], axis=1).astype(float)
        if thorough and len(data.y) < _MIN_ROWS_FOR_HOLDOUT:
            fold = stratified_folds(Y, _FOLDS, cluster, self.rng)
            masks = [fold == f for f in range(fold.max() + 1)]
        else:
            masks = [stratified_holdout(Y, _HELD_OUT, cluster, self.rng)]
        parts = [(data.select(~mask), data.select(mask)) for mask in masks]
        log_odds = [(train.offset.copy(), test.offset.copy()) for train, test in parts]
        total_weight = sum(test.w.sum() for _, test in parts)
        losses = [sum(_loss(test, eta) for (_, test), (_, eta) in zip(parts, log_odds, strict=True)) / total_weight]
        while len(losses) <= _MAX_TREES and len(losses) - 1 - int(np.argmin(losses)) < _PATIENCE:
            for (train, test), (eta_train, eta_test) in zip(parts, log_odds, strict=True):
                tree = fit_tree(train, eta_train)
                eta_train += tree.predict(train.bins)
                eta_test += tree.predict(test.bins)
            loss = sum(_loss(test, eta) for (_, test), (_, eta) in zip(parts, log_odds, strict=True))
            losses.append(loss / total_weight)
        return int(np.argmin(losses))


def _loss(data: BinnedRows, log_odds: Array) -> float:
    return -float(weighted_sum(data.w, data.y * log_expit(log_odds) + (1 - data.y) * log_expit(-log_odds)))


def bin_features(features: Sequence[FeatureBins], log_odds: Array, columns: Mapping[str, Array]) -> Array:
    """The bins of all features, (features, n); the first is that of the log odds."""
    return np.stack(
        [feature.bins_of(log_odds if i == 0 else columns[feature.name]) for i, feature in enumerate(features)]
    )
