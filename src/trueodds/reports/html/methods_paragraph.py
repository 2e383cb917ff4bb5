"""Write the methods paragraph of an audit, with references, for a paper or a validation report."""

from __future__ import annotations

from typing import NamedTuple

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.cross_validation import GAIN_NOT_ESTABLISHED, NOT_ENOUGH_ROWS, TRAINING_ROWS
from trueodds.core.formatting import format_count, format_number, format_percent_in_text
from trueodds.core.versions import version_rows
from trueodds.diagrams._style.formatting import capitalize_first
from trueodds.estimators._smoothing.local_regression import SMOOTHERS
from trueodds.hypotests.omnibus import Omnibus
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import HOLM, NOT_ATTEMPTED, AuditMeasure
from trueodds.reports.text.formatting import count_classes, describe_lens
from trueodds.reports.text.result_tables import standard_measure_label

# The methods of confidence intervals in words, and the paper that the text cites for each.
_INTERVAL_NAMES = {
    "bca": ("bias-corrected and accelerated bootstrap intervals", "efron1987"),
    "percentile": ("percentile bootstrap intervals", None),
    "folded-normal": ("folded-normal bootstrap intervals", None),
    "normal": ("normal (Wald) intervals", None),
    "residual-norm": ("residual-norm bootstrap intervals", None),
    "t": ("Student t intervals", None),
    "reconciled": ("intervals that were reconciled with the tests and with each other", None),
}

_ESTIMATOR_NAMES = {"brier": "the Brier score", "log_loss": "the log loss", "ece": "the expected calibration error"}

# The standard measures in words, and the paper that the text cites for each.
_STANDARD_MEASURE_NAMES: dict[str, tuple[str, str | None]] = {
    "calibration_in_the_large": ("calibration-in-the-large", None),
    "calibration_intercept": ("calibration intercept (slope fixed at 1)", "cox1958"),
    "calibration_slope": ("calibration slope", "cox1958"),
    "observed_to_expected": ("O:E ratio", None),
    "ici": (
        f"integrated calibration index (ICI), from a loess curve of span {SMOOTHERS['loess'].span:g}",
        "austin2019",
    ),
    "auc": ("AUC", "delong1988"),
}


class MethodsParagraph(NamedTuple):
    """The methods of an audit in words, and the papers that the text cites."""

    text: str
    references: tuple[str, ...]


def describe_methods(audit: AuditResult) -> MethodsParagraph:
    """Return the methods paragraph of an audit, from the settings that its estimates and tests report.

    The references are in alphabetical order.
    """
    keys: dict[str, None] = {}  # of the cited references, as an ordered set, to which the sentences add
    sentences = (
        _describe_rows(audit),
        *_describe_errors(audit, keys),
        _describe_intervals(audit, keys),
        *_describe_standard_measures(audit, keys),
        *_describe_tests(audit, keys),
        *_describe_groups(audit, keys),
        *_describe_recalibration(audit, keys),
        f"Computed with {'; '.join([_versions_of(audit), *_describe_origin(audit)])}.",
    )
    text = " ".join(sentence for sentence in sentences if sentence)
    return MethodsParagraph(text, tuple(sorted(REFERENCES[key] for key in keys)))


def cite_audit(audit: AuditResult) -> str:
    """Return a text that cites the audit: program, version, seed, data and fingerprint of the rows."""
    rows = f"Calibration audit of {audit.data.source} ({format_count(audit.data.n, 'row')})"
    program = f"trueodds {audit.version}"
    return "; ".join([rows, program, *_describe_origin(audit), f"verdict: {audit.verdict.state}"]) + "."


def _describe_origin(audit: AuditResult) -> list[str]:
    """Return the seed and the fingerprint of the rows, if they are known."""
    seed, fingerprint = (audit.settings or {}).get("seed"), audit.data.fingerprint
    parts = []
    if seed is not None:
        parts.append(f"seed {seed}" if isinstance(seed, int) else "a random generator without a seed")
    return [*parts, f"rows {fingerprint}"] if fingerprint else parts


def _versions_of(audit: AuditResult) -> str:
    """Return the programs that computed the audit, each with its version."""
    versions = audit.versions or {"trueodds": audit.version}
    return ", ".join(f"{name} {version}" for name, version in version_rows(versions))


def _cited(keys: dict[str, None], *used: str) -> str:
    """Add the references `used` to the keys, and return their citation in parentheses, such as (Cox 1958)."""
    keys.update(dict.fromkeys(used))
    return f"({'; '.join(cite(key) for key in used)})"


def _describe_rows(audit: AuditResult) -> str:
    data = audit.data
    text = f"Calibration was evaluated on {format_count(data.n, 'row')} of {count_classes(data)}"
    if data.weighted:
        text += ", with weights"
    if data.votes:
        text += ", with the votes of annotators as outcomes"
    if data.clusters is not None:
        text += f", in {format_count(data.clusters, 'cluster')} of dependent rows"
    conversions = {
        "log odds": " Scores were read as log odds and converted to probabilities by the logistic function.",
        "logits": " Logits were converted to probabilities by the softmax function.",
    }
    return f"{text}.{conversions.get(data.logits or '', '')}"


def _describe_errors(audit: AuditResult, keys: dict[str, None]) -> list[str]:
    errors = [measure for measure in audit.measures if measure.estimator == "ece"]
    if not errors:
        return []
    lenses_by_bins: dict[str, list[str]] = {}
    for measure in errors:
        subject = describe_lens(measure.lens, audit.data) or measure.lens
        lenses_by_bins.setdefault(_describe_partition(measure.settings.get("partition")), []).append(subject)
    parts = [f"for {' and '.join(lenses)}{bins}" for bins, lenses in lenses_by_bins.items()]
    used = ["naeini2015"]
    if any(measure.lens == "canonical" for measure in errors):
        used.append("vaicenavicius2019")
    sentences = [f"The expected calibration error {_cited(keys, *used)} was estimated {', and '.join(parts)}."]
    if any(measure.noise_floor is not None for measure in errors):
        sentences.append(
            "Its expected value for a calibrated model on the same predictions (noise floor) was simulated."
        )
    scores = [measure.estimator for measure in audit.measures if measure.estimator in ("brier", "log_loss")]
    if scores:
        names = " and ".join(_ESTIMATOR_NAMES[name] for name in dict.fromkeys(scores))
        sentences.append(f"{capitalize_first(names)} were computed as proper scores.")
    return sentences


def _describe_partition(partition: str | None) -> str:
    """Return the bins in words.

    >>> _describe_partition("uniform 15"), _describe_partition("median-variance 16")
    (' in 15 bins of equal width', ' in up to 16 leaves of a median-variance tree')
    >>> _describe_partition("median-variance min 10")
    ' in bins by the partition median-variance min 10'
    """
    if partition is None:
        return ""
    name, _, count = partition.partition(" ")
    if name == "uniform" and count.isdigit():
        return f" in {count} bins of equal width"
    if name == "median-variance" and count.isdigit():
        return f" in up to {count} leaves of a median-variance tree"
    return " in cells by predicted class" if name == "predicted-class" else f" in bins by the partition {partition}"


def _describe_intervals(audit: AuditResult, keys: dict[str, None]) -> str:
    measures_by_method: dict[str, list[AuditMeasure]] = {}
    for measure in audit.measures:
        if measure.interval is not None:
            measures_by_method.setdefault(measure.interval.method, []).append(measure)
    if not measures_by_method:
        return ""
    names, counts = [], set()
    for method, measures in measures_by_method.items():
        name, key = _INTERVAL_NAMES.get(method, (f"intervals by the method {method}", None))
        users = dict.fromkeys(_ESTIMATOR_NAMES.get(measure.estimator, measure.estimator) for measure in measures)
        names.append(f"{name}{f' {_cited(keys, key)}' if key else ''} for {' and '.join(users)}")
        counts |= {measure.settings["resamples"] for measure in measures if "resamples" in measure.settings}
    level = next(measure.interval.level for measure in audit.measures if measure.interval is not None)
    unit = "" if audit.data.clusters is None else " of whole clusters"
    resamples = f", from {' or '.join(f'{n:,}' for n in sorted(counts))} bootstrap resamples{unit}" if counts else ""
    return f"{format_percent_in_text(level)} confidence intervals: {'; '.join(names)}{resamples}."


def _describe_tests(audit: AuditResult, keys: dict[str, None]) -> list[str]:
    if not audit.tests:
        return []
    name, draws = audit.tests[-1].test, audit.tests[-1].settings.get("resamples")
    alpha = format_number(audit.verdict.alpha)
    if name == "omnibus":
        statistic = "the omnibus test, a harmonic mean of the p-values of level, slope and local errors "
        statistic += _cited(keys, "cox1958", "good1958", "wilson2019", "lee2023")
    else:
        statistic = f"the {name.replace('_', ' ')} test"
    text = f"Calibration was tested by {statistic}"
    if draws is not None:
        text += f", with {draws:,} draws of the null distribution: {_describe_null(audit, keys)}"
    family = f"All tests and that of the recalibration are one family, tested at level {alpha}."
    if audit.has_holm_pvalues:
        family = (
            f"The tests of all lenses, classes and groups and of the recalibration are one family, tested at level"
            f" {alpha}; p-values of single lenses and classes were adjusted by Holm's method"
            f" {_cited(keys, 'holm1979')}."
        )
    return [f"{text}.", family]


def _describe_null(audit: AuditResult, keys: dict[str, None]) -> str:
    """Return how the null distribution was drawn, as the tests themselves state it."""
    if audit.data.clusters is None and not audit.data.votes:
        return f"labels drawn from the predicted probabilities {_cited(keys, 'brocker2007')}"
    return audit.tests[-1].null.removesuffix(Omnibus.joint_null)


def _describe_standard_measures(audit: AuditResult, keys: dict[str, None]) -> list[str]:
    measures = [measure for measure in audit.standard_measures if measure.value is not None]
    if not measures:
        return []
    names = []
    for measure in measures:
        name, key = _STANDARD_MEASURE_NAMES[measure.name]
        if measure.name == "calibration_slope" and audit.data.kind == "classes" and audit.data.k > 2:
            name, key = "calibration slope (the maximum-likelihood exponent of the probabilities)", None
        names.append(f"{name}{f' {_cited(keys, key)}' if key else ''}")
    text = f"The standard measures are {', '.join(names)}."
    return [text, _describe_standard_intervals(audit, keys)]


def _describe_standard_intervals(audit: AuditResult, keys: dict[str, None]) -> str:
    """Return the methods of the intervals of the standard measures, each with its measures; empty without any."""
    users: dict[str, list[str]] = {}
    for measure in audit.standard_measures:
        if measure.value is not None and measure.interval is not None:
            users.setdefault(measure.interval.method, []).append(measure.name)
    texts = []
    for method, names in users.items():
        details = [_describe_coefficient_errors(audit)] if "calibration_slope" in names else []
        details += ["that of the AUC is computed on the logit scale"] if "auc" in names else []
        text = _describe_interval_method(method, list(map(standard_measure_label, names)), keys)
        texts.append(f"{text} ({'; '.join(details)})" if details else text)
    unit = "" if audit.data.clusters is None else ", all from whole clusters"
    return f"Their intervals are {'; '.join(texts)}{unit}." if texts else ""


def _describe_interval_method(method: str, names: list[str], keys: dict[str, None]) -> str:
    """Return a method of intervals with its reference, and the names of the numbers that have such an interval."""
    description, key = _INTERVAL_NAMES.get(method, (f"intervals by the method {method}", None))
    *others, last = names
    subject = f"{', '.join(others)} and {last}" if others else last
    return f"{description}{f' {_cited(keys, key)}' if key else ''} for {subject}"


def _describe_coefficient_errors(audit: AuditResult) -> str:
    data = audit.data
    if data.kind == "classes" and data.k > 2:
        return "the slope has a sandwich standard error"
    if data.clusters is not None:
        return "intercept and slope have jackknife standard errors over clusters"
    if data.votes:
        return "intercept and slope have jackknife standard errors over rows"
    return "the intercept has a sandwich standard error, and the slope that of the fitted logistic regression"


def _describe_groups(audit: AuditResult, keys: dict[str, None]) -> list[str]:
    if not audit.groups or audit.among_groups is None:
        return []
    correction = audit.among_groups.correction
    key = "holm1979" if correction == HOLM else "westfall1993"
    columns = " and ".join(dict.fromkeys(group.column for group in audit.groups))
    text = (
        f"The {format_count(len(audit.groups), 'group')} of {columns} were tested jointly by {correction}"
        f" {_cited(keys, key)}, with the equivalence margin {format_number(audit.among_groups.min_effect)}."
    )
    return [text, _describe_group_intervals(audit, keys)]


def _describe_group_intervals(audit: AuditResult, keys: dict[str, None]) -> str:
    """Return the methods of the intervals of the groups; empty without any."""
    users: dict[str, dict[str, None]] = {}
    for group in audit.groups:
        intervals = [(_ESTIMATOR_NAMES["ece"], group.interval)]
        intervals += [(standard_measure_label(measure.name), measure.interval) for measure in group.standard_measures]
        for name, interval in intervals:
            if interval is not None:
                users.setdefault(interval.method, {})[name] = None
    texts = [_describe_interval_method(method, list(names), keys) for method, names in users.items()]
    return (
        f"The intervals of each group, not adjusted for the number of groups, are {'; '.join(texts)}." if texts else ""
    )


def _describe_recalibration(audit: AuditResult, keys: dict[str, None]) -> list[str]:
    recalibration = audit.recalibration
    if recalibration is None or recalibration.status == NOT_ATTEMPTED:
        return []
    if recalibration.status == TRAINING_ROWS:
        return ["No recalibration was judged, because the model may have been fitted to these rows."]
    candidates = [candidate.method for candidate in recalibration.candidates if candidate.method != "identity"]
    breiman = _cited(keys, "breiman1984")
    nested = _cited(keys, "stone1974", "bayle2020")
    text = (
        f"Recalibration was chosen by cross-validated log loss and the one-standard-error rule {breiman} among"
        f" {', '.join(map(CALIBRATORS.title, candidates))}. Its gain was estimated and tested by nested"
        f" cross-validation {nested}, on rows that neither fitted nor chose it, at level"
        f" {format_number(recalibration.alpha)}."
    )
    if not recalibration.confirmed:
        is_small = recalibration.status == NOT_ENOUGH_ROWS
        return [text, f"No recalibration was confirmed: {'too few rows' if is_small else 'no significant gain'}."]
    key = CALIBRATOR_REFERENCES.get(recalibration.chosen)
    name = f"{CALIBRATORS.title(recalibration.chosen)}{f' {_cited(keys, key)}' if key else ''}"
    fitted_rows = "all rows"
    if audit.recalibrates_sample:
        fitted_rows = f"a random sample of {(recalibration.rows or {})['fit']:,} rows"
    outcome = f"Outcome: {recalibration.status}, {name}, fitted on {fitted_rows}."
    if recalibration.status == GAIN_NOT_ESTABLISHED:
        outcome += " The test confirmed the miscalibration that this map corrects; the interval of its gain includes 0."
    return [text, outcome]


REFERENCES = {
    "alexandari2020": "Alexandari, Kundaje & Shrikumar (2020). Maximum likelihood with bias-corrected calibration is"
    " hard-to-beat at label shift adaptation. ICML.",
    "austin2019": "Austin & Steyerberg (2019). The Integrated Calibration Index (ICI) and related metrics for"
    " quantifying the calibration of logistic regression models. Statistics in Medicine 38.",
    "bayle2020": "Bayle, Bayle, Janson & Mackey (2020). Cross-validation confidence intervals for test error. NeurIPS.",
    "breiman1984": "Breiman, Friedman, Olshen & Stone (1984). Classification and Regression Trees. Wadsworth.",
    "brocker2007": "Bröcker & Smith (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting"
    " 22.",
    "cox1958": "Cox (1958). Two further applications of a model for binary regression. Biometrika 45.",
    "delong1988": "DeLong, DeLong & Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver"
    " operating characteristic curves: a nonparametric approach. Biometrics 44.",
    "efron1987": "Efron (1987). Better bootstrap confidence intervals. Journal of the American Statistical Association"
    " 82.",
    "good1958": "Good (1958). Significance tests in parallel and in series. Journal of the American Statistical"
    " Association 53.",
    "guo2017": "Guo, Pleiss, Sun & Weinberger (2017). On calibration of modern neural networks. ICML.",
    "holm1979": "Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of"
    " Statistics 6.",
    "kull2017": "Kull, Silva Filho & Flach (2017). Beta calibration: a well-founded and easily implemented improvement"
    " on logistic calibration for binary classifiers. AISTATS.",
    "kull2019": "Kull, Perelló-Nieto, Kängsepp, Silva Filho, Song & Flach (2019). Beyond temperature scaling: obtaining"
    " well-calibrated multi-class probabilities with Dirichlet calibration. NeurIPS.",
    "lee2023": "Lee, Huang, Hassani & Dobriban (2023). T-Cal: an optimal test for the calibration of predictive models."
    " Journal of Machine Learning Research 24.",
    "lucena2018": "Lucena (2018). Spline-based probability calibration. arXiv:1809.07751.",
    "naeini2015": "Naeini, Cooper & Hauskrecht (2015). Obtaining well calibrated probabilities using Bayesian binning."
    " AAAI.",
    "oron2017": "Oron & Flournoy (2017). Centered isotonic regression: point and interval estimation for dose-response"
    " studies. Statistics in Biopharmaceutical Research 9.",
    "platt1999": "Platt (1999). Probabilistic outputs for support vector machines and comparisons to regularized"
    " likelihood methods. Advances in Large Margin Classifiers.",
    "stone1974": "Stone (1974). Cross-validatory choice and assessment of statistical predictions. Journal of the Royal"
    " Statistical Society B 36.",
    "turner2014": "Turner, Steyvers, Merkle, Budescu & Wallsten (2014). Forecast aggregation via recalibration. Machine"
    " Learning 95.",
    "vaicenavicius2019": "Vaicenavicius, Widmann, Andersson, Lindsten, Roll & Schön (2019). Evaluating model"
    " calibration in classification. AISTATS.",
    "vovk2014": "Vovk & Petej (2014). Venn–Abers predictors. UAI.",
    "westfall1993": "Westfall & Young (1993). Resampling-Based Multiple Testing. Wiley.",
    "wilson2019": "Wilson (2019). The harmonic mean p-value for combining dependent tests. PNAS 116.",
    "zadrozny2001": "Zadrozny & Elkan (2001). Obtaining calibrated probability estimates from decision trees and naive"
    " Bayesian classifiers. ICML.",
    "zadrozny2002": "Zadrozny & Elkan (2002). Transforming classifier scores into accurate multiclass probability"
    " estimates. KDD.",
    "zhang2020": "Zhang, Kailkhura & Han (2020). Mix-n-Match: ensemble and compositional methods for uncertainty"
    " calibration in deep learning. ICML.",
}

# The key of the paper that introduced each calibrator, by its name.
CALIBRATOR_REFERENCES = {
    "beta": "kull2017",
    "bias_corrected_temperature": "alexandari2020",
    "centered_isotonic": "oron2017",
    "dirichlet": "kull2019",
    "histogram": "zadrozny2001",
    "irm": "zhang2020",
    "isotonic": "zadrozny2002",
    "llo": "turner2014",
    "matrix": "guo2017",
    "platt": "platt1999",
    "spline": "lucena2018",
    "temperature": "guo2017",
    "vector": "guo2017",
    "venn_abers": "vovk2014",
}


def cite(key: str) -> str:
    """Return authors and year of a reference, as a text cites it.

    >>> cite("holm1979"), cite("guo2017"), cite("vovk2014")
    ('Holm 1979', 'Guo et al. 2017', 'Vovk & Petej 2014')
    """
    authors, _, year_and_title = REFERENCES[key].partition(" (")
    names = authors.replace(" & ", ", ").split(", ")
    return f"{authors if len(names) < 3 else names[0] + ' et al.'} {year_and_title[:4]}"
