"""Tables of the obesity study over splits, and comparisons with the numbers of Vennos, Xing and Franck (2026)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds_studies.common.recalibration_methods import loss_changes, split_values, summarize_splits
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.study_result import StudyResult, format_change, format_count

PUBLISHED_TABLE: Mapping[str, Mapping[str, Any]] = {
    "calibration rows": {"n": 396, "p": None, "ECE": 0.160, "accuracy": 0.851, "changed": None},
    "none": {"n": 132, "p": 0.014, "ECE": 0.127, "accuracy": 0.788, "changed": None},
    "MCLLO": {"n": 132, "p": 0.167, "ECE": 0.073, "accuracy": 0.811, "changed": 0.0227},
    "binning": {"n": 132, "p": 0.068, "ECE": 0.083, "accuracy": 0.810, "changed": 0.0303},
    "evidential (Xu)": {"n": 132, "p": 0.014, "ECE": 0.078, "accuracy": 0.811, "changed": 0.030},
}
"""Published results of section 4.3 by method.

The names of the last two rows are missing in the available text. It states that histogram binning is not rejected, so
that binning is the one with p = 0.068.
"""

PUBLISHED_PARAMETERS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "delta": ((0.527, 0.241), (1.002, 0.406), (2.714, 1.404), (0.002, 0.001), (1.167, 0.391), (1.529, 0.524)),
    "gamma": ((2.785, 0.399), (2.211, 0.214), (1.719, 0.175), (4.698, 0.960), (2.387, 0.247), (2.020, 0.188)),
}
"""Published estimates with standard errors against Normal Weight, assumed to be of the other classes in alphabetical
order."""


LEGEND = """Held-out rows (132 of 2,111), mean over the splits unless stated otherwise. baseline: the baseline class
of MCLLO's fit and test. loss, maximum loss: mean and maximum log loss over splits in nats per row, after mixing with
a share of 1/397 of the uniform distribution, as in `auto`; infinite loss: share of splits whose log loss is infinite
without mixing. se: standard error of the mean over splits, assuming independence. p > 0.05: share of splits in which
MCLLO's likelihood-ratio test on these rows has p > 0.05; redrawn: the same with redrawn labels (exact for any n);
test diverges: share in which its fit has no finite estimates; fit diverges: the same for the fit of the calibrator.
ECE: confidence, 12 bins (√n). changed: share of rows whose predicted class changes. MCLLO, unpenalized: the
likelihood without penalty at its supremum; MCLLO uses a small penalty if no finite estimates exist. Votes of 0 are
replaced by 1e-12 in fits and 1e-6 in the test."""


def build_result(results: Sequence[Row], settings: Row) -> StudyResult:
    """All tables, that by method first; `results` has one row per feature set and split."""
    also = (
        StudyResult("obesity.gains", summarize_gains(gain_table(results)), gain_table(results), settings, GAINS_LEGEND),
        StudyResult(
            "obesity.paper",
            "Published values for one split, and medians or means over our splits.",
            paper_table(results),
            settings,
            PAPER_LEGEND,
        ),
        StudyResult(
            "obesity.parameters",
            summarize_finite(results),
            parameter_table(results),
            settings,
            PARAMETERS_LEGEND,
        ),
        StudyResult(
            "obesity.floors",
            summarize_min_prob(min_prob_table(results)),
            min_prob_table(results),
            settings,
            FLOORS_LEGEND,
        ),
        StudyResult("obesity.splits", "Every split by itself.", split_table(results), settings, SPLITS_LEGEND),
    )
    return StudyResult("obesity", summarize(results), method_table(results), settings, LEGEND, also)


def all_rows(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set, split, baseline, and method."""
    return tuple(
        {"features": result["features"], "split": result["split"], **row}
        for result in results
        for row in result["rows"]
    )


def method_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set, baseline and method: means over the splits."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in all_rows(results):
        groups.setdefault((row["features"], row["baseline"], row["method"]), []).append(row)
    return tuple(
        {"features": features, "baseline": baseline, "method": method} | _summarize_splits(rows)
        for (features, baseline, method), rows in groups.items()
    )


def _summarize_splits(rows: Sequence[Row]) -> dict[str, Any]:
    """`summarize_splits` with the columns that only this study has."""
    further_columns = {
        "p > 0.05, redrawn": float((split_values(rows, "p redrawn") > 0.05).mean()),
        "test diverges": float(split_values(rows, "test diverges").mean()),
        "fit diverges": float(split_values(rows, "fit diverges").mean()),
    }
    return summarize_splits(rows) | further_columns


GAINS_LEGEND = """difference: log loss minus that without recalibration on the same rows, mixed as above; negative
values are an improvement; se: standard error of its mean over splits, assuming independence; corrected se: the
same, multiplied by √(1 + J · 132/1979) for the rows that J splits share (Nadeau & Bengio 2003). share worse, maximum
difference: share of splits in which it is positive, and its maximum. chosen: methods chosen by auto, with their
frequencies."""
SHARED_SHARE = 132 / 1979  # evaluated rows divided by the others, for `loss_changes`


def gain_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set, baseline and method: its loss minus that without recalibration, over the splits."""
    rows = []
    for group in method_table(results):
        if group["method"] != "none":
            key = {name: group[name] for name in ("features", "baseline", "method")}
            method_rows = [row for row in all_rows(results) if _matches(row, key)]
            none = [row for row in all_rows(results) if _matches(row, key | {"method": "none"})]
            rows.append(key | loss_changes(method_rows, none, shared=SHARED_SHARE))
    return tuple(rows)


def _matches(row: Row, key: Row) -> bool:
    """Whether a row has these values in the columns of the key."""
    return all(row[name] == value for name, value in key.items())


def summarize_gains(rows: Sequence[Row]) -> str:
    """In words, the change of the held-out log loss by auto, by feature set."""
    phrases = [
        f"{row['difference']:+.3f}{'' if row['corrected se'] is None else ' ± ' + format(row['corrected se'], '.3f')}"
        f" ({row['features']})"
        for row in rows
        if row["method"] == "auto"
    ]
    return f"The method chosen by auto changes the held-out log loss by {', '.join(phrases)} nats per row."


FLOORS_LEGEND = """replacement: value that replaces smaller vote shares at the beginning; rows are then normalized. LRT:
median over splits of the statistic on the calibration rows (12 degrees of freedom); p: median on the held-out rows;
p > 0.05: share of splits. none, MCLLO, unpenalized, ridge, temperature: mean held-out log loss without mixing; mixed:
the same after mixing with a share of 1/397 of the uniform distribution."""
SHOWN_FITS = ("none", "MCLLO", "unpenalized", "ridge", "temperature")  # columns of the table, with and without `mixed `


def min_prob_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set and replacement of zero votes: test, and held-out log losses, over the splits."""
    rows = []
    for features in dict.fromkeys(result["features"] for result in results):
        by_split = [result["floors"] for result in results if result["features"] == features]
        for i, first in enumerate(by_split[0]):
            min_prob_rows = [rows_of_split[i] for rows_of_split in by_split]
            row = {"features": features, "replacement": str(first["replacement"])}
            row |= {name: float(np.median(split_values(min_prob_rows, name))) for name in ("LRT", "p")}
            row |= {"p > 0.05": float((split_values(min_prob_rows, "p") > 0.05).mean())}
            rows.append(
                row
                | {
                    f"{kind}{name}": float(split_values(min_prob_rows, kind + name).mean())
                    for kind in ("", "mixed ")
                    for name in SHOWN_FITS
                }
            )
    return tuple(rows)


def summarize_min_prob(rows: Sequence[Row]) -> str:
    """In words, how much the mean held-out losses depend on the replacement, with and without mixing."""

    def largest_range(prefix: str) -> float:
        """Largest range of a loss over the replacements, for methods with bounded parameters."""
        return max(
            float(np.ptp([row[prefix + name] for row in rows if row["features"] == features]))
            for features in {row["features"] for row in rows}
            for name in ("none", "ridge", "temperature")
        )

    return (
        "For replacements of zero votes from 1e-12 to half a vote, the mean held-out log losses without recalibration,"
        f" with the ridge, and with temperature scaling vary by {largest_range('mixed '):.3f} nats at most with a"
        f" share of 1/397 of the uniform distribution, and by {largest_range(''):.3f} without mixing."
    )


SPLITS_LEGEND = """p: for the held-out rows, against Normal Weight. Methods: held-out log loss after mixing. zeros:
share of the votes for the calibration rows that are 0; true zeros: observed classes without votes, calibration and
held-out rows together."""


def split_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set and split: zeros, p-values, and the mixed loss of every method."""
    rows = []
    for result in results:
        method_rows = {row["method"]: row for row in result["rows"] if row["baseline"] == "Normal Weight"}
        row = {"features": result["features"], "split": result["split"], "accuracy": method_rows["none"]["accuracy"]}
        row |= {"zeros": result["zeros"], "true zeros": int(result["true zeros"] + result["true zeros held out"])}
        row |= {f"p {name}": method_rows[name]["p"] for name in ("none", "MCLLO", "MCLLO, ridge")}
        row |= {name: method_row["mixed"] for name, method_row in method_rows.items()}
        rows.append(row | {"chosen by auto": method_rows["auto"]["chosen"]})
    return tuple(rows)


def summarize(results: Sequence[Row]) -> str:
    """In words, held-out losses, tests and ECE, for the feature set whose accuracy is closest to the published one."""
    rows = method_table(results)
    features = "no Weight" if any(row["features"] == "no Weight" for row in rows) else rows[0]["features"]
    by_method = {
        row["method"]: row for row in rows if row["features"] == features and row["baseline"] == "Normal Weight"
    }
    loss = ", ".join(
        f"{by_method[name]['loss']:.3f} {label}"
        for name, label in (
            ("none", "without recalibration"),
            ("MCLLO", "after MCLLO"),
            ("MCLLO, unpenalized", "without its penalty"),
            ("MCLLO, ridge", "with a ridge"),
            ("temperature on log p", "after temperature scaling"),
            ("auto", "with auto"),
        )
    )
    none, after = by_method["none"], by_method["MCLLO"]
    return (
        f"A forest ({features}; {format_count(none['splits'], 'split')}): held-out log loss {loss}. MCLLO's test does"
        f" not reject in {none['p > 0.05']:.0%} of the splits before and {after['p > 0.05']:.0%} after MCLLO; ECE"
        f" {format_change(none['ECE'], after['ECE'])}."
    )


METHOD_INTERPRETATIONS = {"evidential (Xu)": ("evidential (Xu)", "evidential, min_prob 1e-3", "evidential on p")}
"""Methods of ours that a published row may refer to, as the paper does not describe them in detail.

The text of the evidential method was not available, and it is not known how votes of 0 were handled.
"""

PAPER_LEGEND = """published: value in the paper for a single split. Other rows: median of p and mean of the other
columns over our splits. The names of the last two published rows are missing; the text states that histogram binning
is not rejected. Accuracy and changed are shares."""


def paper_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """The published rows of section 4.3, each followed by ours for every feature set."""
    rows = []
    for method, printed in PUBLISHED_TABLE.items():
        rows.append({"method": method, "features": "published"} | dict(printed))
        for features in dict.fromkeys(result["features"] for result in results):
            feature_results = [result for result in results if result["features"] == features]
            names = METHOD_INTERPRETATIONS.get(method, (method,))
            rows += [
                {"method": name, "features": features, **_average_row(_method_rows(feature_results, name))}
                for name in names
            ]
    return tuple(rows)


def _method_rows(results: Sequence[Row], method: str) -> list[Row]:
    """The rows of a method over the splits, against Normal Weight; `calibration rows` are without recalibration."""
    if method == "calibration rows":
        return [result["learn"] for result in results]
    method_rows = [row for result in results for row in result["rows"]]
    return [row for row in method_rows if row["method"] == method and row["baseline"] == "Normal Weight"]


def _average_row(rows: Sequence[Row]) -> dict[str, Any]:
    """The median of p and the means of the other columns over the splits."""
    averages = {"n": rows[0]["n"], "p": float(np.median(split_values(rows, "p")))}
    return averages | {name: float(split_values(rows, name).mean()) for name in ("ECE", "accuracy", "changed")}


PARAMETERS_LEGEND = """δ and γ against Normal Weight with standard errors, from the 396 calibration rows of the first
split with finite estimates. finite: share of splits with finite estimates; median gamma: its median over these
splits. published: values in the paper."""


def parameter_table(results: Sequence[Row]) -> tuple[Row, ...]:
    """One row per feature set and class: δ and γ of the first split with finite estimates, and the published values."""
    rows: list[Row] = []
    for features in dict.fromkeys(result["features"] for result in results):
        feature_results = [result for result in results if result["features"] == features]
        finite = [result for result in feature_results if _has_finite_fit(result)]
        for j, estimate in enumerate(finite[0]["parameters"] if finite else ()):
            row = {"features": features, "split": finite[0]["split"], "class": finite[0]["classes"][estimate["class"]]}
            for name in ("delta", "gamma"):
                row |= {name: estimate[name], f"{name} se": estimate[f"{name}_se"]}
                row |= {
                    f"published {name}": PUBLISHED_PARAMETERS[name][j][0],
                    f"published {name} se": PUBLISHED_PARAMETERS[name][j][1],
                }
            gammas = [result["parameters"][j]["gamma"] for result in finite]
            rows.append(row | {"median gamma": float(np.median(gammas)), "finite": len(finite) / len(feature_results)})
    return tuple(rows)


def _has_finite_fit(result: Row) -> bool:
    """Whether the fit of MCLLO on the calibration rows has finite estimates."""
    return bool(np.isfinite([parameter["gamma"] for parameter in result["parameters"]]).all())


def summarize_finite(results: Sequence[Row]) -> str:
    """In words, the number of fits on the calibration rows with finite estimates."""
    n_finite = sum(_has_finite_fit(result) for result in results)
    return f"In {n_finite} of {len(results)} fits on the calibration rows, finite estimates exist."
