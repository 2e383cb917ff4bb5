"""Suggest the known names for an unknown word, with the synonyms of the literature and of other libraries.

Case, hyphens, underscores and blanks make no difference.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

# Synonyms of settings, values and arguments, by what is suggested for them (see `add_synonyms`). Those of methods are
# declared beside their names: in `estimators`, `hypotests`, `calibrators` and `diagrams`.
_SYNONYMS_OF_SETTING: dict[str, tuple[str, ...]] = {
    "equal-mass": ("quantile", "adaptive", "equal frequency", "equal count", "uniform mass"),
    "uniform": ("equal width", "uniform width"),
    "partition": ("strategy", "binning", "scheme", "binning scheme", "binning strategy", "bin type"),
    "bins": ("n bins", "num bins", "nbins"),
    "order": ("norm",),
    "resamples": ("n bootstrap", "n boot", "n bootstraps", "n resamples", "bootstraps"),
    "level": ("confidence level", "conf level"),
    "level (1 − alpha)": ("alpha", "significance level"),
    "min_prob": ("eps", "epsilon", "floor"),
    "weight": ("sample weight",),
    "sample_weight": ("weight",),
    "weight | sample_weight": ("weights", "sample weights"),
    "group": ("groups", "subgroup", "subgroups", "sensitive features"),
    "cluster": ("clusters",),
    "classes": ("class names", "target names"),
    "rng": ("seed", "random state", "random seed"),
}

# Settings of which users of other libraries write the values under other names too, as in strategy="quantile", or as a
# setting of their own, as in adaptive=True.
_VALUES_OF_SETTING = {"partition": ("equal-mass", "uniform")}

_DISCRIMINATION_TEXT = (
    "Discrimination is not calibration. 'brier' and 'log_loss' reflect both; the parts of 'corp' separate them."
)
_ACCURACY_TEXT = (
    "Accuracy is not calibration. It is available in to.table and to.audit; 'brier' and 'log_loss' reflect both."
)
_F1_TEXT = (
    "It is not calibration. `expect` gives its expected and observed values; 'brier' and 'log_loss' reflect both."
)
# Measures that the library does not have, because they do not measure calibration, with the explanation.
UNRELATED_MEASURES = {
    **dict.fromkeys(("auc", "auroc", "roc auc", "roc auc score"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("c statistic", "c index", "concordance"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("auprc", "pr auc", "average precision", "gini", "roc"), _DISCRIMINATION_TEXT),
    **dict.fromkeys(("accuracy", "acc", "error rate", "mcc"), _ACCURACY_TEXT),
    **dict.fromkeys(("f1", "f1 score", "precision", "recall"), _F1_TEXT),
}


def normalize_name(word: str) -> str:
    """Return a name in lower case without punctuation, for comparing spellings.

    >>> normalize_name("Log-Loss"), normalize_name("log_loss"), normalize_name("O:E")
    ('logloss', 'logloss', 'oe')
    """
    return re.sub(r"[^a-z0-9]", "", word.lower())


PHRASES_OF_SYNONYM: dict[str, tuple[str, ...]] = {}  # the phrases that are suggested for each normalized synonym


def add_synonyms(synonyms_of_phrase: Mapping[str, Sequence[str]]) -> None:
    """Add synonyms in the literature and other libraries, by what is suggested for them.

    The keys are a phrase, or several phrases separated by " | ". A phrase is the name of a method, setting, value or
    argument, which `name_of_phrase` returns, and may be followed by a blank and what the synonym needs beside the name,
    such as "ece with ⟨lens='classwise'⟩". Of several phrases those are suggested whose name is known where the synonym
    was used, as a calibrator or a diagram for "hist".
    """
    for phrases, synonyms in synonyms_of_phrase.items():
        for synonym in {normalize_name(synonym) for synonym in synonyms}:
            PHRASES_OF_SYNONYM[synonym] = (*PHRASES_OF_SYNONYM.get(synonym, ()), *phrases.split(" | "))


add_synonyms(_SYNONYMS_OF_SETTING)
_TEXT_OF_UNRELATED_MEASURE = {normalize_name(word): text for word, text in UNRELATED_MEASURES.items()}


def name_of_phrase(phrase: str) -> str:
    """Return the name that a phrase of `add_synonyms` begins with: its text up to the first blank."""
    return phrase.partition(" ")[0]


def resolve_synonym(word: str, known: Collection[str]) -> list[str]:
    """Return the known names that `word` misspells; if none, what its synonyms suggest.

    >>> resolve_synonym("N-Bins", ["bins", "order"]), resolve_synonym("nonsense", ["bins"])
    (['bins'], [])
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


def did_you_mean(word: str, known: Iterable[str], *, as_code: bool = False) -> str:
    """Return a question that suggests similar known names; empty if there are none.

    >>> did_you_mean("n_bootstrap", ["level", "resamples"]), did_you_mean("eggs", ["level", "resamples"])
    ('Did you mean resamples?', '')
    """
    near_names = find_near_names(word, known)
    return f"Did you mean {' or '.join(_mark(near_names, as_code))}?" if near_names else ""


def suggest_setting(word: str, value: object, known: Collection[str]) -> str:
    """Return a question that suggests a known setting, and its value if the value is one of another library; else "".

    >>> suggest_setting("strategy", "quantile", ["bins", "partition"]), suggest_setting("n_bins", 10, ["bins"])
    ("Did you mean ⟨partition='equal-mass'⟩?", 'Did you mean ⟨bins⟩?')
    """
    if setting_and_value := translate_setting(word, value, known):
        return f"Did you mean ⟨{setting_and_value}⟩?"
    return did_you_mean(word, known, as_code=True)


def translate_setting(word: str, value: object, known: Collection[str]) -> str:
    """Return the code of a known setting and its value, if both words are those of other libraries; else "".

    >>> translate_setting("strategy", "quantile", ["bins", "partition"])
    "partition='equal-mass'"
    >>> translate_setting("adaptive", True, ["bins", "partition"]), translate_setting("strategy", 3, ["partition"])
    ("partition='equal-mass'", '')
    """
    settings = resolve_synonym(word, known) if isinstance(value, str) else []
    if value is True:
        settings, value = [name for name in _VALUES_OF_SETTING if name in known], word
    for setting in settings:
        values = resolve_synonym(str(value), _VALUES_OF_SETTING.get(setting, ()))
        if len(values) == 1:
            return f"{setting}={values[0]!r}"
    return ""


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


def list_names(names: Sequence[str], max_length: int = 200, *, as_code: bool = False) -> str:
    """Return the known names as a sentence, truncated to about `max_length` characters; marked if they are `as_code`.

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
    return f"Known: {', '.join(_mark(names[:n_shown], as_code))}{more}."


def _mark(names: Sequence[str], as_code: bool) -> list[str]:
    return [f"⟨{name}⟩" if as_code else name for name in names]
