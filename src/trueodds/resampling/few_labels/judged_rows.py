"""Rows that a judge has scored and of which some have a label: how they were sampled, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import kolmogorov

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_count, format_number
from trueodds.core.settings import check
from trueodds.core.typing import Array
from trueodds.data.arrays import (
    as_array_with_missing,
    as_float_array,
    as_labels,
    check_one_dimensional,
    check_same_length,
    refuse_first_invalid,
)
from trueodds.data.labels import check_binary, check_correctness
from trueodds.data.weights import check_clusters, check_groups

Sampling = Literal["random"]
MIN_SELECTION_PVALUE = 1e-3  # below it, the labeled rows are taken to be chosen by their scores
MIN_PROBABILITY = 1e-100  # of a label: the inverse of a smaller one could be infinite
MIN_LABELS_OF_STRATUM = 2  # of which a variance can be estimated


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """How the labeled rows were sampled from all rows."""

    n: int
    labeled: Array  # (m,) numbers of the rows with a label
    weight: Array  # (m,) inverse probability of a label; the weights of a stratum add up to its number of rows
    has_equal_weights: bool
    stratum: Array  # (n,) numbered from 0; all 0 without strata
    rows_of_stratum: Array  # (H,)
    cluster: Array | None  # (n,) numbered from 0

    @property
    def n_strata(self) -> int:
        """The number of strata, 1 without any."""
        return len(self.rows_of_stratum)

    @property
    def n_labeled_units(self) -> int:
        """The number of labels, or of clusters with a label."""
        return len(self.labeled) if self.cluster is None else len(np.unique(self.cluster[self.labeled]))

    @property
    def kish_n(self) -> float:
        """Effective number of labels with unequal weights, (Σw)²/Σw². Source: Kish (1965)."""
        return float(self.weight.sum() ** 2 / weighted_sum(self.weight, self.weight))

    def cluster_sums(self, values: Array) -> Array:
        """The sum of the values (n,) of each cluster."""
        assert self.cluster is not None
        return np.bincount(self.cluster, values)


def read_labels(label: Any, n: int, name: str = "label") -> tuple[Array, Array]:
    """Return the mask (n,) of rows with a label, and their labels (m,) as 0.0 and 1.0.

    Raises InputError TO101 without any label, TO107 for another number of rows, and TO116 for other values.
    """
    values, mask = as_labels(label, name, n)
    check_one_dimensional(values, name)
    check_same_length(values, np.empty(n), name, "score")
    labeled = np.ones(n, dtype=bool) if mask is None else mask
    if not labeled.any():
        fix = "Pass labels of at least two rows, or ⟨sensitivity=⟩ and ⟨specificity=⟩ from other rows."
        raise InputError("TO101", f"No row has a {name}.", f"{n:,} rows without one", fix)
    is_text = values.dtype.kind in "US"
    checked = check_correctness(values, name) if is_text else check_binary(values, name)
    return labeled, checked[labeled].astype(np.float64)


def read_scores(score: Any, name: str = "score") -> Array:
    """Return the scores (n,) as float64; raise TO102 for values outside [0, 1] and TO103 for missing ones."""
    scores = as_float_array(as_array_with_missing(score, name), name).astype(np.float64, copy=False)
    check_one_dimensional(scores, name)
    if not np.isfinite(scores).all():
        fix = "Leave out the rows that the judge did not score, and say how many there were."
        refuse_first_invalid(scores, ~np.isfinite(scores), "TO103", f"{name} has missing values.", fix)
    is_outside = (scores < 0) | (scores > 1)
    if is_outside.any():
        fix = "Divide a grade by its maximum; 0 is the judge's surest no and 1 its surest yes."
        refuse_first_invalid(scores, is_outside, "TO102", f"Every {name} must lie in [0, 1].", fix)
    return scores


def read_sample(
    labeled_mask: Array, sampling: Sampling | None, probability: Any, cluster: Any, stratum: Any
) -> SampledRows:
    """Return how the labeled rows were sampled; raise TO220 unless that is stated, and other errors for bad columns."""
    n, labeled = len(labeled_mask), np.flatnonzero(labeled_mask)
    if (check("sampling", sampling, Sampling | None) is None) == (probability is None):
        got = "neither sampling nor probability" if probability is None else "both sampling and probability"
        fix = (
            "Pass ⟨sampling='random'⟩ if every row (of a stratum) had the same chance of a label, else ⟨probability=⟩,"
            " the probability of a label of each row."
        )
        raise InputError("TO220", "State how the labeled rows were chosen.", got, fix)
    weight = np.ones(len(labeled)) if probability is None else 1 / _read_probabilities(probability, labeled_mask)
    clusters = check_clusters(cluster, n)
    names = check_groups({} if stratum is None else {"stratum": stratum}, n).get("stratum", np.zeros(n, dtype=np.int8))
    values, codes = np.unique(names, return_inverse=True) if stratum is not None else (names[:1], names)
    rows_of_stratum = np.bincount(codes).astype(np.float64)
    codes_of_labeled = codes[labeled]
    labels_of_stratum = np.bincount(codes_of_labeled, minlength=len(values))
    if labels_of_stratum.min() < MIN_LABELS_OF_STRATUM:
        smallest = int(labels_of_stratum.argmin())
        got = format_count(int(labels_of_stratum[smallest]), "label")
        if stratum is None:
            raise InputError("TO221", "A mean needs two labels or more.", got, "Label more rows.")
        problem = "Every stratum needs two labels or more."
        raise InputError("TO221", problem, f"{got} in {values[smallest]}", "Merge strata, or label more rows.")
    weight = weight * (rows_of_stratum / np.bincount(codes_of_labeled, weight))[codes_of_labeled]
    sample = SampledRows(
        n, labeled, weight, bool(np.ptp(weight) <= 1e-9 * weight.max()), codes, rows_of_stratum, clusters
    )
    if clusters is not None and sample.n_labeled_units <= sample.n_strata:
        got = f"{format_count(sample.n_labeled_units, 'cluster')} with a label"
        fix = "Label rows of more clusters; one cluster shows no difference between clusters."
        raise InputError("TO221", "There are too few clusters with a label.", got, fix)
    return sample


def _read_probabilities(probability: Any, labeled: Array) -> Array:
    """Return the probabilities of the labeled rows; those of other rows may be missing."""
    values = as_float_array(as_array_with_missing(probability, "probability"), "probability").astype(np.float64)
    check_one_dimensional(values, "probability")
    check_same_length(values, labeled, "probability", "score")
    problem = "The probability of a label must be known and lie in (0, 1]."
    is_invalid = ~((values >= MIN_PROBABILITY) & (values <= 1)) & (labeled | ~np.isnan(values))
    if is_invalid.any():
        fix = "Rows that could not get a label are not represented: leave them out, and say so."
        refuse_first_invalid(values, is_invalid, "TO222", problem, fix)
    is_contradicted = (values == 1) & ~labeled
    if is_contradicted.any():
        problem = "Rows that get a label with probability 1 have none."
        refuse_first_invalid(values, is_contradicted, "TO222", problem, "Correct the probability, or add the label.")
    return values[labeled]


def refuse_selected_labels(scores: Array, rows: SampledRows, name: str = "score") -> None:
    """Raise TO223 if a random sample of labeled rows has clearly other scores than the others.

    It is the Kolmogorov–Smirnov test in each stratum, with Bonferroni's factor; with clusters the number of labels is
    divided by the design effect of the mean score. It finds labels of the highest scores, not every selection.
    """
    mask = np.zeros(rows.n, dtype=bool)
    mask[rows.labeled] = True
    deviation = scores - (np.bincount(rows.stratum, scores) / rows.rows_of_stratum)[rows.stratum]
    design_effect = 1.0
    if rows.cluster is not None and (total := float(np.sum(deviation[mask] ** 2))) > 0:
        design_effect = max(1.0, float(np.sum(rows.cluster_sums(deviation * mask) ** 2)) / total)
    for h in range(rows.n_strata):
        in_stratum = rows.stratum == h if rows.n_strata > 1 else np.ones(rows.n, dtype=bool)
        first, second = np.sort(scores[mask & in_stratum]), np.sort(scores[~mask & in_stratum])
        if not len(second):
            continue
        values = np.unique(first)  # the largest difference lies at a score of a labeled row, or just below it
        distance = max(
            np.abs(
                np.searchsorted(first, values, side) / len(first) - np.searchsorted(second, values, side) / len(second)
            ).max()
            for side in ("left", "right")
        )
        size = len(first) * len(second) / (len(first) + len(second)) / design_effect
        pvalue = float(min(1.0, rows.n_strata * kolmogorov(distance * np.sqrt(size))))
        if pvalue < MIN_SELECTION_PVALUE:
            got = (
                f"mean {name} {format_number(first.mean())} of {format_count(len(first), 'labeled row')},"
                f" {format_number(second.mean())} of the others (Kolmogorov-Smirnov p = {format_number(pvalue)})"
            )
            fix = "Pass ⟨probability=⟩, the probability of a label of each row, or label a random sample."
            raise InputError("TO223", "The labeled rows are no random sample.", got, fix)


def notes_on_sample(rows: SampledRows) -> list[Note]:
    """Return the note on weights of which few labels carry most."""
    if rows.has_equal_weights or rows.kish_n >= len(rows.labeled) / 2:
        return []
    text = (
        f"The labeling probabilities differ so much that {format_count(len(rows.labeled), 'label')} count as"
        f" {rows.kish_n:.0f}."
    )
    return [Note("TN296", text)]
