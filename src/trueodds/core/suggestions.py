"""Suggest the known names for an unknown word, with the synonyms of the literature and of other libraries.

Case, hyphens, underscores and blanks make no difference.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence

# Synonyms in the literature and other libraries, by what is suggested for them: a phrase, or several phrases separated
# by " | ". A phrase is the name of a method, setting, value or argument, which `name_of_phrase` returns, and may be
# followed by a blank and what the synonym needs beside the name, such as "ece with lens='classwise'". Of several
# phrases those are suggested whose name is known where the synonym was used, as a calibrator or a diagram for "hist".
_SYNONYMS_OF_PHRASE: dict[str, tuple[str, ...]] = {
    # estimators
    "ece": ("expected calibration error", "calibration error", "l1 calibration error", "confidence ece", "top1 ece"),
    "ece with lens='top-label'": ("top-label ece", "top-label calibration error"),
    "ece with lens='classwise'": (
        "classwise ece", "cwece", "classwise calibration error", "marginal calibration error",
    ),
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
    "net_benefit": ("nb", "net benefit", "standardized net benefit", "decision curve analysis", "dca"),
    "rps": ("ranked probability score",),
    "ici": ("integrated calibration index", "eavg"),
    "calibration_in_the_large": ("mean calibration", "mean difference", "mean bias", "mean gap"),
    "calibration_in_the_large | cox | shift": ("citl", "calibration in the large"),
    "o_e": (
        "oe ratio", "observed expected", "observed to expected", "observed to expected ratio", "e:o", "eo ratio",
        "expected observed ratio",
    ),
    # tests
    "hosmer_lemeshow": ("hl", "hl test", "hosmer lemeshow test"),
    "spiegelhalter": ("spiegelhalter z", "spiegelhalter z test", "spiegelhalter test", "z test"),
    "consistency": ("consistency resampling", "consistency test"),
    "cox": ("cox test", "cox regression", "calibration slope", "slope"),
    "cox | shift": ("calibration intercept", "intercept"),
    "giviti": ("giviti test",),
    # calibrators
    "temperature": ("temperature scaling", "temp scaling", "ts"),
    "platt": ("platt scaling", "sigmoid", "logistic", "logistic calibration", "logistic recalibration"),
    "isotonic": ("isotonic regression", "pav", "pava"),
    "centered_isotonic": ("centered isotonic regression", "centred isotonic", "centred isotonic regression", "cir"),
    "beta": ("beta calibration", "betacal"),
    "histogram": ("histogram binning", "uniform mass binning"),
    "histogram | confidence_histogram": ("histogram", "hist"),
    "vector": ("vector scaling",),
    "matrix": ("matrix scaling",),
    "dirichlet": ("dirichlet calibration",),
    "bbq": ("bayesian binning", "bayesian binning into quantiles"),
    "venn_abers": ("va", "ivap", "cvap", "venn abers predictor"),
    "ensemble_temperature": ("ets", "ensemble temperature scaling"),
    "shift": ("intercept only", "intercept recalibration", "intercept update", "recalibration in the large"),
    "bias_corrected_temperature": ("bcts", "bias corrected temperature scaling"),
    "scaling_binning": ("scaling binning calibrator", "platt binning"),
    "spline": ("spline calibration", "splines"),
    "prior_shift": ("label shift", "prior correction", "prior probability shift"),
    "identity": ("uncalibrated", "no calibration"),
    "aurc": ("area under the risk coverage curve", "risk coverage area"),
    "risk": ("selective error", "risk at coverage", "selective accuracy"),
    # diagrams
    "reliability": (
        "reliability diagram", "reliability plot", "calibration curve", "calibration plot", "calibration diagram",
    ),
    "reliability_curve": ("loess", "lowess", "smooth calibration curve", "flexible calibration curve"),
    "corp": ("corp diagram", "corp reliability diagram"),
    "murphy": ("murphy diagram",),
    "decision_curve": ("decision curve analysis", "dca", "net benefit curve", "net benefit"),
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
    # arguments
    "weight": ("sample weight",),
    "sample_weight": ("weight",),
    "weight | sample_weight": ("weights", "sample weights"),
    "group": ("groups", "subgroup", "subgroups", "sensitive features"),
    "cluster": ("clusters",),
    "classes": ("class names", "target names"),
    "rng": ("seed", "random state", "random seed"),
}  # fmt: skip

_DISCRIMINATION_TEXT = (
    "That measures discrimination, not calibration; 'brier' and 'log_loss' reflect both, and the parts of 'corp' "
    "separate them."
)
_ACCURACY_TEXT = (
    "That measures accuracy, not calibration; an audit and a table report it as accuracy, and 'brier' and 'log_loss'"
    " reflect both."
)
# Measures that the library does not have, because they do not measure calibration, with the explanation.
UNRELATED_MEASURES = {
    **dict.fromkeys(("auc", "auroc", "roc auc", "roc auc score"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("c statistic", "c index", "concordance"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("auprc", "pr auc", "average precision", "gini", "roc"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("accuracy", "acc", "error rate", "f1", "f1 score", "precision", "recall", "mcc"), _ACCURACY_TEXT),
}


def normalize_name(word: str) -> str:
    """Return a name in lower case without punctuation, for comparing spellings.

    >>> normalize_name("Log-Loss"), normalize_name("log_loss"), normalize_name("O:E")
    ('logloss', 'logloss', 'oe')
    """
    return re.sub(r"[^a-z0-9]", "", word.lower())


# The phrases that are suggested for each normalized synonym.
PHRASES_OF_SYNONYM = {
    normalize_name(synonym): tuple(phrases.split(" | "))
    for phrases, synonyms in _SYNONYMS_OF_PHRASE.items()
    for synonym in synonyms
}
_TEXT_OF_UNRELATED_MEASURE = {normalize_name(word): text for word, text in UNRELATED_MEASURES.items()}


def name_of_phrase(phrase: str) -> str:
    """Return the name that a phrase of `_SYNONYMS_OF_PHRASE` begins with: its text up to the first blank."""
    return phrase.partition(" ")[0]


def resolve_synonym(word: str, known: Collection[str]) -> list[str]:
    """Return the known names of which this is another spelling, else the phrases of those of which it is a synonym.

    >>> resolve_synonym("Classwise-ECE", ["ece", "sce"]), resolve_synonym("nonsense", ["ece"])
    (["ece with lens='classwise'"], [])
    """
    if other_spellings := [name for name in known if normalize_name(name) == normalize_name(word)]:
        return other_spellings
    return [phrase for phrase in PHRASES_OF_SYNONYM.get(normalize_name(word), ()) if name_of_phrase(phrase) in known]


def explain_unrelated_measure(word: str) -> str | None:
    """Return the explanation for the name of a measure that does not measure calibration."""
    return _TEXT_OF_UNRELATED_MEASURE.get(normalize_name(word))


def suggest_names(word: str, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: the name that it is a synonym of, similar names, or all names.

    >>> suggest_names("quantile", ["equal-mass", "uniform"]), suggest_names("unifrom", ["equal-mass", "uniform"])
    ('Did you mean equal-mass?', 'Did you mean uniform?')
    """
    known = sorted(known)
    return did_you_mean(word, known) or list_names(known)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests similar known names; empty if there are none.

    >>> did_you_mean("n_bootstrap", ["level", "resamples"]), did_you_mean("eggs", ["level", "resamples"])
    ('Did you mean resamples?', '')
    """
    near_names = find_near_names(word, known)
    return f"Did you mean {' or '.join(near_names)}?" if near_names else ""


def find_near_names(word: str, known: Iterable[str]) -> list[str]:
    """Return the names that a word may stand for: a synonym, up to three that it begins, or up to three similar ones.

    >>> find_near_names("hosmer", ["hosmer_lemeshow", "score"]), find_near_names("scroe", ["hosmer_lemeshow", "score"])
    (['hosmer_lemeshow'], ['score'])
    """
    known = sorted(known)
    completions = (
        [name for name in known if normalize_name(name).startswith(normalize_name(word))] if len(word) > 2 else []
    )
    return resolve_synonym(word, known) or completions[:3] or difflib.get_close_matches(word.lower(), known, n=3)


def list_names(names: Sequence[str], max_length: int = 200) -> str:
    """Return the known names as a sentence, truncated to about `max_length` characters.

    >>> list_names(["beta", "platt"]), list_names(["beta", "platt", "isotonic"], max_length=12)
    ('Known: beta, platt.', 'Known: beta, platt and 1 more.')
    """
    size, n_shown = 0, 0
    for name in names:
        size += len(name) + 2 * (n_shown > 0)
        if size > max_length and n_shown:
            break
        n_shown += 1
    more = f" and {len(names) - n_shown:,} more" if n_shown < len(names) else ""
    return f"Known: {', '.join(names[:n_shown])}{more}."
