"""Find the options that an unknown option may stand for, by the words of other tools and by similar spelling."""

from __future__ import annotations

import click

from trueodds.core.suggestions import normalize_name, resolve_synonym

# What other tools and the API call an option.
_SYNONYMS_OF_OPTION = {
    "--estimator": ("metric", "measure", "score", "scorer", "error"),
    "--method": ("calibrator", "recalibrator", "calibration"),
    "--diagram": ("plot", "figure", "chart"),
    "--label": ("target", "truth", "outcome", "y", "y_true"),
    "--probs": ("prob", "probabilities", "probability", "predictions", "p", "y_prob"),
    "--out": ("output", "o"),
    "--seed": ("rng", "random_state", "random_seed"),
    "--weight": ("weights", "sample_weight"),
    "--group": ("groups", "by"),
    "--fail-on": ("gate", "fail_if", "threshold"),
}


def find_near_options(problem: click.NoSuchOption) -> tuple[list[str], bool]:
    """Return the options that may be meant, and whether they are synonyms of the unknown one or only look similar."""
    command = problem.ctx.command if problem.ctx else None
    options = {opt for param in command.params for opt in param.opts if opt.startswith("--")} if command else set()
    word = normalize_name(problem.option_name)
    synonyms = [
        option
        for option, synonym_words in _SYNONYMS_OF_OPTION.items()
        if word in map(normalize_name, synonym_words) and option in options
    ]
    option_of_name = {option.lstrip("-").replace("-", "_"): option for option in options}
    synonyms += [
        option_of_name[name] for name in resolve_synonym(problem.option_name, option_of_name) if name in option_of_name
    ]
    return (list(dict.fromkeys(synonyms)), True) if synonyms else (list(problem.possibilities or ()), False)
