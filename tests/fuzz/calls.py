"""Random calls of every verb give a correct number or an InputError; `make fuzz` makes many."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import math
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import trueodds as to
from tests.fuzz.oracle import expected
from tests.fuzz.rows import Rows, rows
from tests.fuzz.values import PLAUSIBLE, odd, setting
from trueodds import InputError, Predictions
from trueodds.api.by_group import by_group
from trueodds.binning import equal_mass, median_variance, simplex_grid, uniform
from trueodds.calibrators import CALIBRATORS
from trueodds.core.registry import dataclass_settings
from trueodds.diagrams import DIAGRAMS
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses import classes, ranked
from trueodds.resampling.intervals.method import IntervalSpec

Rng = np.random.Generator
Verb = Callable[[Rng, Rows], Any]

OWN = ("lens", "interval", "level", "resamples", "resample", "aggregate", "region", "mode", "weight_kind", "rng")
SLOW = ("auto", "bbq", "evidential", "enir", "spline", "prior_shift")  # calibrators that take long on a dozen rows too
LONGEST = 400  # characters of a message
MASKED = "Warning. converting a masked element"  # NumPy's, of a list that holds one; it is refused then as missing


class Failed(Exception):
    """A call that gave neither a right number nor an InputError."""


def some(rng: Rng, names: Any, max_count: int = 2) -> dict[str, Any]:
    """Values for a few of the settings."""
    names = [str(name) for name in names]
    chosen = rng.choice(names, min(len(names), int(rng.integers(max_count + 1))), replace=False) if names else []
    return {str(name): setting(str(name), rng) for name in chosen}


def named(rng: Rng, registry: Any) -> Any:
    """Mostly the name of a member, at times something else."""
    names = registry.names()
    return odd(rng) if rng.random() < 0.05 else names[rng.integers(len(names))]


def accepted(registry: Any, name: Any) -> tuple[str, ...]:
    """The settings of a member; none of what is no member."""
    return registry.settings_of(name) if isinstance(name, str) and name in registry.names() else ()


def measure(rng: Rng, data: Rows) -> Any:
    """An error, mostly the bare number; a plain one is calculated anew."""
    plain = rng.random() < 0.4
    name = (
        ("ece", "rmsce", "mce", "brier", "log_loss", "debiased_l2")[rng.integers(6)]
        if plain
        else named(rng, ESTIMATORS)
    )
    own = some(rng, accepted(ESTIMATORS, name))
    if plain and rng.random() < 0.7:
        own = {key: PLAUSIBLE[key](rng) for key in own if key in ("bins", "closed", "order")} | (
            {"partition": "uniform", "bins": int(rng.integers(1, 20))} if name == "debiased_l2" else {}
        )
    call = {"interval": None} | some(rng, OWN, 1)
    if call["interval"] is not None:
        call.setdefault("resamples", 9)
    estimate = to.measure(data.preds, name, **(call | own))
    check_numbers(estimate, "value")
    settings = {key: value for key, value in call.items() if key != "lens"} | own
    known = expected(name, data, call.get("lens"), settings)
    if known is not None and not close(estimate.value, known, root=name == "debiased_l2"):
        raise Failed(f"{name} is {estimate.value!r} and should be {known!r}")
    return "right" if known is None else "calculated anew"


def test(rng: Rng, data: Rows) -> Any:
    """A test with few draws."""
    name = named(rng, TESTS)
    own = some(rng, accepted(TESTS, name))
    call = some(rng, ("lens", "hypothesis", "margin", "level", "region", "mode", "weight_kind", "rng", "progress"), 1)
    if "resamples" in accepted(TESTS, name):
        own.setdefault("resamples", 5)
    verdict = to.test(data.preds, name, **(own | call))
    check_numbers(verdict, "pvalue")
    return verdict


def compare(rng: Rng, data: Rows) -> Any:
    """Two models, the second a permutation of the first, or anything."""
    other = data.preds if rng.random() < 0.5 else data.preds[::-1] if rng.random() < 0.8 else odd(rng)
    name = named(rng, ESTIMATORS)
    known = inspect.signature(to.compare).parameters
    call = {"interval": None} | some(rng, [key for key in known if key not in ("a", "b", "estimator", "settings")], 1)
    call.setdefault("resamples", 9)
    comparison = to.compare(data.preds, other, name, **(some(rng, accepted(ESTIMATORS, name), 1) | call))
    check_numbers(comparison, "difference")
    return comparison


def power(rng: Rng, data: Rows) -> Any:
    """A plan by a law, or by twenty simulations."""
    call = some(
        rng,
        ("n", "power", "effect", "width", "alpha", "lens", "estimator", "region", "weight_kind", "rng", "progress"),
        2,
    )
    extra = some(rng, ("simulations", "distortion", "direction", "resamples", "min_prob"), 1)
    name = "spiegelhalter" if rng.random() < 0.5 else odd(rng)
    return to.power(data.preds, name, **({"simulations": 20} | extra | call))


def fit(rng: Rng, data: Rows) -> Any:
    """A calibrator, and what it makes of the rows it was fitted on."""
    name = named(rng, CALIBRATORS)
    slow = isinstance(name, str) and name in SLOW
    own = (
        {str(key): odd(rng) for key in accepted(CALIBRATORS, name)} if slow else some(rng, accepted(CALIBRATORS, name))
    )
    calibrator = to.fit(data.preds, name, **(some(rng, ("lens", "level", "mode", "weight_kind", "rng"), 1) | own))
    if not np.isfinite(made := calibrator.predict_proba(data.preds.p)).all():
        raise Failed(f"{name} gives {made!r}")
    return calibrator


def draw(rng: Rng, data: Rows) -> Any:
    """A diagram's numbers."""
    name = named(rng, DIAGRAMS)
    own = ({"resamples": 99} if "resamples" in accepted(DIAGRAMS, name) else {}) | some(rng, accepted(DIAGRAMS, name))
    models = {"1": data.preds, "2": data.preds} if rng.random() < 0.2 else data.preds
    return to.draw(models, name, **(own | some(rng, ("lens", "mode", "weight_kind", "rng", "ax"), 1)))


def tally(rng: Rng, data: Rows) -> Any:
    """The sums, which count every row of weight."""
    counted = to.tally(data.preds, **some(rng, ("lenses", "grid", "bins", "resume", "progress"), 2))
    if counted.n != int((data.w > 0).sum()):
        raise Failed(f"{counted.n} rows were counted")
    return counted


def audit(rng: Rng, data: Rows) -> Any:
    """An audit with one setting that it should refuse: whole ones take too long for many."""
    known = [key for key in inspect.signature(to.audit).parameters if key != "data"]
    wrong = {str(rng.choice(known)): odd(rng) for _ in range(3)}
    return to.audit(data.preds, **({"resamples": 19, "alpha": 1e-6} | wrong))


def groups(rng: Rng, data: Rows) -> Any:
    """The error of every subgroup."""
    known = [key for key in inspect.signature(by_group).parameters if key not in ("preds", "estimator", "settings")]
    name = ("ece", "brier")[rng.integers(2)] if rng.random() < 0.9 else odd(rng)
    grouping = by_group(data.preds, name, **({"resamples": 3, "interval": None} | some(rng, known)))
    for group in grouping.groups:
        check_numbers(group.estimate, "value")
    return grouping


def predictions(rng: Rng, data: Rows) -> Any:
    """A constructor with odd arguments, or odd values in its arrays."""
    n = len(data.P)
    labels, right = data.Y.argmax(axis=1), data.Y[:, 0] == 1
    makers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (Predictions, {"y_true": labels, "y_prob": data.P, "classes": None, "sum_tolerance": None}),
        (Predictions.from_logits, {"y_true": labels, "logits": data.P, "classes": None}),
        (Predictions.from_confidence, {"confidence": data.P.max(axis=1), "correct": right}),
        (Predictions.from_multilabel, {"Y": (data.P > 0.4).astype(int), "P": data.P, "classes": None}),
        (Predictions.from_dense, {"labels": labels, "probs": data.P, "axis": 1, "logits": False, "ignore": None}),
        (Predictions.from_estimator, {"model": None, "X": data.P, "y": labels}),
        (
            lambda **arguments: to.read((labels, data.P), **arguments).collect(),
            {"probs": "p_*", "engine": None, "batch_rows": 10},
        ),
        (lambda rows: data.preds[rows], {"rows": slice(None)}),
        (to.load, {"path": "nowhere.json"}),
    )
    make, arguments = makers[rng.integers(len(makers))]
    if make not in (Predictions.from_dense, Predictions.from_estimator, to.load) and "rows" not in arguments:
        arguments |= {"weight": None, "group": None, "cluster": None}
    for name in rng.choice(list(arguments), min(len(arguments), int(rng.choice([0, 1, 1, 2]))), replace=False):
        value, how = arguments[name], rng.random()
        if how < 0.4 or not isinstance(value, np.ndarray):
            arguments[name] = odd(rng) if how < 0.7 else [odd(rng)] * (n if rng.random() < 0.7 else 1)
        else:
            changed = value.astype(object) if how < 0.8 else value.astype(float)
            fits = odd(rng) if how < 0.8 else (math.nan, math.inf, -1.0, 2.0, 1e300)[rng.integers(5)]
            changed[tuple(rng.integers(size) for size in value.shape)] = (
                fits if np.isscalar(fits) or fits is pd.NA else None
            )
            arguments[name] = changed
    return make(**arguments)


def instance(rng: Rng, data: Rows) -> Any:
    """A member, a partition, a lens or the settings of an interval, made by its class."""
    kinds: list[Any] = [
        uniform.Uniform,
        equal_mass.EqualMass,
        uniform.FixedEdges,
        median_variance.MedianVariance,
        equal_mass.FixedMass,
        IntervalSpec,
    ]
    kinds += [equal_mass.Sweep, simplex_grid.SimplexGrid, classes.Class, classes.Groups, ranked.TopK, ranked.Rank]
    kind = kinds[rng.integers(len(kinds))]
    if rng.random() < 0.8:
        registry = (ESTIMATORS, TESTS, CALIBRATORS, DIAGRAMS)[rng.integers(4)]
        kind = registry.load(registry.names()[rng.integers(len(registry.names()))])
    required = [field.name for field in dataclasses.fields(kind) if field.init and field.default is dataclasses.MISSING]
    return kind(**({name: setting(name, rng) for name in required} | some(rng, dataclass_settings(kind))))


VERBS: dict[str, Verb] = {
    "measure": measure, "predictions": predictions, "instance": instance, "test": test, "fit": fit, "draw": draw,
    "compare": compare, "tally": tally, "by_group": groups, "power": power, "audit": audit,
}  # fmt: skip


def check_numbers(result: Any, name: str) -> None:
    """NaN never without a note and never with an interval; strict JSON."""
    number = getattr(result, name)
    if (
        number is not None
        and math.isnan(number)
        and (not result.notes or getattr(result, "interval", None) is not None)
    ):
        raise Failed(f"{name} is NaN, with {result.notes!r} and {getattr(result, 'interval', None)!r}")
    json.dumps(result.to_dict(), allow_nan=False)


def close(a: float, b: float, *, root: bool) -> bool:
    """Equal up to rounding; near 0 a root of a difference is so in its square only."""
    if a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-9 * max(abs(a), abs(b)):
        return True
    return abs(a * a - b * b) <= 1e-14 if root else abs(a - b) <= 1e-13


def called(verb: str, seed: int, number: int) -> str:
    """Make one call, by its seed and number, and say whether it was right or refused; what is neither raises."""
    rng = np.random.default_rng([seed, number])
    try:
        result = VERBS[verb](rng, rows(rng))
    except InputError as refusal:
        message = str(refusal)
        if len(message) > LONGEST and "Known:" not in refusal.fix:
            raise Failed(f"a message of {len(message):,} characters: {message[:500]}") from None
        return "refused"
    return result if isinstance(result, str) else "right"


def run(verb: str, calls: int, seed: int, *, seconds: float = math.inf) -> tuple[Counter[str], list[str]]:
    """How many calls were right and refused, and what the others did; no call begins after so many seconds."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    end = time.perf_counter() + seconds
    for number in range(calls):
        if time.perf_counter() > end:
            break
        try:
            counts[called(verb, seed, number)] += 1
        except Exception as problem:  # noqa: BLE001 - whatever comes up is what is looked for
            where = [
                f"{frame.filename.split('trueodds/')[-1]}:{frame.lineno}"
                for frame in traceback.extract_tb(problem.__traceback__)
            ]
            failures.append(
                f"{verb} seed {seed} call {number}: {type(problem).__name__} {str(problem)[:300]} at {where[-1]}"
            )
    return counts, failures


def main() -> None:
    """Make many calls and print how many of each verb were right, refused and neither; the latter make the status 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, help="of each verb; 1000, or with --seconds any number")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all verbs together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verb", choices=VERBS, action="append")
    args = parser.parse_args()
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", MASKED)
    verbs = args.verb or list(VERBS)
    calls = args.calls or (1000 if math.isinf(args.seconds) else sys.maxsize)
    failed = False
    for verb in verbs:
        start = time.perf_counter()
        counts, failures = run(verb, calls, args.seed, seconds=args.seconds / len(verbs))
        took = time.perf_counter() - start
        summary = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
        print(f"{verb}: {summary}, {len(failures):,} failed in {took:.1f} s", flush=True)
        for kind, count in Counter(failure.split(": ", 1)[1] for failure in failures).most_common(40):
            print(f"  {count} x {kind}")
            print(f"      {next(failure for failure in failures if kind in failure).split(': ')[0]}")
        failed |= bool(failures)
    sys.exit(failed)


if __name__ == "__main__":
    main()
