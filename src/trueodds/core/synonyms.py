"""What do the literature and other libraries call it? Hints for unknown names; a hint is never taken for a name.

Case, hyphens, underscores and blanks make no difference. A phrase begins with the name it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_PHRASES: dict[str, tuple[str, ...]] = {  # one phrase or several -> what other people call it
    # estimators
    "ece": ("expected calibration error", "calibration error", "l1 calibration error", "confidence ece", "top1 ece"),
    "ece with lens='top-label'": ("top-label ece", "top-label calibration error"),
    "ece with lens='classwise'": ("classwise ece", "cwece", "classwise calibration error", "marginal calibration error"),
    "sce": ("static calibration error",),
    "mce": ("maximum calibration error", "max calibration error", "max ce"),
    "ace | ece with partition='equal-mass'": (
        "adaptive ece", "adaptive calibration error", "ada ece", "equal mass ece", "quantile ece",
    ),
    "tace": ("thresholded adaptive calibration error",),
    "rmsce": ("rms calibration error", "root mean square calibration error", "l2 calibration error", "l2 ece"),
    "debiased_l2": ("debiased ece", "debiased calibration error", "debiased rmsce"),
    "sweep": ("ece sweep", "sweep ece", "monotonic sweep"),
    "ece_kde": ("kde ece", "kernel density ece"),
    "smece": ("smooth ece", "smooth calibration error"),
    "ks": ("kolmogorov smirnov", "ks error", "ks statistic", "ks test"),
    "ecce | ecce_mad | ecce_r": ("estimated cumulative calibration error", "cumulative calibration error"),
    "skce": ("squared kernel calibration error", "kernel calibration error", "kce", "kernel test"),
    "mmce": ("maximum mean calibration error",),
    "brier": (
        "brier score", "brier loss", "brier score loss", "neg brier score", "mean squared error", "mse",
        "quadratic score",
    ),
    "brier (its root is the RMSE)": ("rmse", "root mean squared error"),
    "brier with decomposition='murphy'": ("brier decomposition", "murphy decomposition", "resolution", "refinement"),
    "log_loss": (
        "nll", "negative log likelihood", "cross entropy", "neg log loss", "log score", "logarithmic score",
        "ignorance score", "deviance",
    ),
    "rps": ("ranked probability score",),
    "ici": ("integrated calibration index", "eavg"),
    "o_e": (
        "oe ratio", "observed expected", "observed to expected", "observed to expected ratio", "e:o", "eo ratio",
        "expected observed ratio",
    ),
    # tests
    "hosmer_lemeshow": ("hl", "hl test", "hosmer lemeshow test"),
    "spiegelhalter": ("spiegelhalter z", "spiegelhalter z test", "spiegelhalter test", "z test"),
    "consistency": ("consistency resampling", "consistency test"),
    "cox": (
        "cox test", "cox regression", "calibration slope", "calibration intercept", "slope", "intercept",
        "calibration in the large", "citl",
    ),
    "giviti": ("giviti test",),
    # calibrators
    "temperature": ("temperature scaling", "temp scaling", "ts"),
    "platt": ("platt scaling", "sigmoid", "logistic", "logistic calibration", "logistic recalibration"),
    "isotonic": ("isotonic regression", "pav", "pava"),
    "centred_isotonic": ("centered isotonic", "centered isotonic regression", "cir"),
    "beta": ("beta calibration", "betacal"),
    "histogram": ("histogram binning", "uniform mass binning"),
    "histogram | confidence_histogram": ("histogram", "hist"),
    "vector": ("vector scaling",),
    "matrix": ("matrix scaling",),
    "dirichlet": ("dirichlet calibration",),
    "bbq": ("bayesian binning", "bayesian binning into quantiles"),
    "venn_abers": ("va", "ivap", "cvap", "venn abers predictor"),
    "ensemble_temperature": ("ets", "ensemble temperature scaling"),
    "bias_corrected_temperature": ("bcts", "bias corrected temperature scaling"),
    "scaling_binning": ("scaling binning calibrator", "platt binning"),
    "spline": ("spline calibration", "splines"),
    "prior_shift": ("label shift", "prior correction", "prior probability shift"),
    "identity": ("uncalibrated", "no calibration"),
    # diagrams
    "reliability": (
        "reliability diagram", "reliability plot", "calibration curve", "calibration plot", "calibration diagram",
    ),
    "reliability_curve": ("loess", "lowess", "smooth calibration curve", "flexible calibration curve"),
    "corp": ("corp diagram", "corp reliability diagram"),
    "murphy": ("murphy diagram",),
    "calibration_belt": ("belt", "giviti belt"),
    "confidence_histogram": ("prediction histogram",),
    "selective_risk": ("aurc", "risk coverage", "risk coverage curve", "accuracy rejection curve"),
    # settings and their values
    "equal-mass": ("quantile", "adaptive", "equal frequency", "equal count", "uniform mass"),
    "uniform": ("equal width", "uniform width"),
    "partition": ("strategy", "binning"),
    "bins": ("n bins", "num bins", "nbins"),
    "order": ("norm",),
    "resamples": ("n bootstrap", "n boot", "n bootstraps", "n resamples", "bootstraps"),
    "level": ("confidence level", "conf level"),
    "min_prob": ("eps", "epsilon", "floor"),
}  # fmt: skip

_DISCRIMINATION = (
    "That measures discrimination, not calibration; 'brier' and 'log_loss' count both, and the parts of 'corp' tell "
    "them apart."
)
_ANSWERS = (
    "That judges the answers, not their probabilities; an audit shows accuracy, and 'brier' and 'log_loss' score both."
)
NO_CALIBRATION = {
    **dict.fromkeys(("auc", "auroc", "roc auc", "roc auc score", "c statistic", "c index", "concordance"), _DISCRIMINATION),
    **dict.fromkeys(("auprc", "pr auc", "average precision", "gini", "roc"), _DISCRIMINATION),
    **dict.fromkeys(("accuracy", "acc", "error rate", "f1", "f1 score", "precision", "recall", "mcc"), _ANSWERS),
}  # fmt: skip


def plain(word: str) -> str:
    """A word without what spellings differ in.

    >>> plain("Log-Loss"), plain("log_loss"), plain("O:E")
    ('logloss', 'logloss', 'oe')
    """
    return re.sub(r"[^a-z0-9]", "", word.lower())


SYNONYMS = {plain(other): tuple(phrase.split(" | ")) for phrase, others in _PHRASES.items() for other in others}
_UNRELATED = {plain(word): text for word, text in NO_CALIBRATION.items()}


def target(phrase: str) -> str:
    """The name that a phrase stands for: its first word."""
    return phrase.partition(" ")[0]


def resolve(word: str, known: Collection[str]) -> list[str]:
    """Which of the known names this is another spelling of or another word for, with what has to be set beside.

    >>> resolve("Classwise-ECE", ["ece", "sce"]), resolve("ECE", ["ece"]), resolve("nonsense", ["ece"])
    (["ece with lens='classwise'"], ['ece'], [])
    """
    if spelled := [name for name in known if plain(name) == plain(word)]:
        return spelled
    return [phrase for phrase in SYNONYMS.get(plain(word), ()) if target(phrase) in known]


def unrelated(word: str) -> str | None:
    """What to say to the name of a measure that is none of calibration."""
    return _UNRELATED.get(plain(word))
