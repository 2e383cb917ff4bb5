"""What the audit asks and finds, on a tally: the same questions, as far as sums can answer them."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.audit.facts import Facts, Progress
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate, Verdict
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.consistency import Consistency
from trueodds.hypotests.several import holm
from trueodds.inference import tallied
from trueodds.inference.estimate import Sureness
from trueodds.problem.lens import Canonical, Classwise, Lens, default_lens
from trueodds.tally.tally import Tally


def of_tally(tally: Tally, resamples: int, rng: np.random.Generator, progress: Progress) -> Facts:
    """Measure and test everything that the tally's cells can tell."""
    first = default_lens(tally)
    lenses: list[Lens] = [first]
    if tally.kind == "classes" and tally.k > 2:
        lenses.append(Classwise())
        if "canonical" in tally.lenses:
            lenses.append(Canonical())
    notes = [
        Note(
            "TN207",
            "The rows were counted, not held, so no fix was looked for; give the file of predictions with mode='exact' (--mode exact) for one.",
        )
    ]
    whole = Canonical() if tally.kind == "classes" else first
    scores = [_estimate(tally, name, whole, resamples, rng) for name in ("brier", "log_loss")]
    errors, tests = [], []
    for i, lens in enumerate(lenses):
        progress(0.1 + 0.6 * i / len(lenses), f"judging {lens}")
        errors.append(_estimate(tally, "ece", lens, resamples, rng))
        tests.append(Consistency(resamples=resamples).from_tally(tally, [lens], rng))
    groups = _groups(tally, first, resamples, rng)
    claims = [test.family_pvalue or test.pvalue for test in tests] + [group["pvalue"] for group in groups]
    if len(claims) > 1:
        strongest = tests[int(np.argmin([test.pvalue for test in tests]))]
        joint = min(holm(claims))
        family = Verdict(
            "consistency", "family", strongest.statistic, joint, tally.n, strongest.null, strongest.floor, joint,
            strongest.effect, {}, strongest.settings, strongest.notes,
        )  # fmt: skip
        tests.insert(0, family)
    gap, z = _gap(tally)
    return Facts(scores, errors, tests, groups, gap, z, notes)


def _estimate(tally: Tally, name: str, lens: Lens, resamples: int, rng: np.random.Generator) -> Estimate:
    return tallied.estimate(tally, ESTIMATORS.make(name, {}), lens, "mean", Sureness(), resamples, rng)


def _groups(tally: Tally, lens: Lens, resamples: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for column, values in tally.groups.items():
        for value, part in values.items():
            estimate = _estimate(part, "ece", lens, resamples, rng)
            verdict = Consistency(resamples=resamples).from_tally(part, [lens], rng)
            right = part.accuracy
            found.append(
                {
                    "column": column,
                    "value": value,
                    "n": part.n,
                    "accuracy": right if np.isfinite(right) else None,
                    "ece": estimate.value,
                    "interval": estimate.interval.to_dict() if estimate.interval else None,
                    "noise_floor": estimate.noise_floor,
                    "pvalue": verdict.pvalue,
                }
            )
    for group, adjusted in zip(found, holm([float(group["pvalue"]) for group in found]) if found else [], strict=True):
        group["holm"] = adjusted
    return found


def _gap(tally: Tally) -> tuple[float | None, float | None]:
    try:
        (view,) = tally.views("confidence")
    except InputError:
        return None, None
    gap = float(view.w @ (view.p - view.y) / view.total)
    se = float(np.sqrt(np.maximum(view.sums("wwv"), 0).sum())) / view.total
    return gap, gap / se if se > 0 else None
