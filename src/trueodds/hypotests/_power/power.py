"""Power analysis of a test: its power, the smallest detectable error and the required number of rows.

The power is asymptotic where the distribution of the statistic under miscalibration is known, and else simulated from
the user's predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.special import chdtri, chndtr, ndtri

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.results import Interval
from trueodds.core.rng import stream_key
from trueodds.core.settings import Level, Probability, Range, Settings
from trueodds.core.suggestions import resolve_synonym
from trueodds.data.predictions import Predictions
from trueodds.hypotests import DEFAULT
from trueodds.hypotests._power.simulation import (
    MAX_DISTORTION,
    Distortion,
    DistortionDirection,
    DistortionKind,
    Population,
    SimulatedPower,
)
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.per_view import DRAWS_MARGIN, ViewTest, required_resamples
from trueodds.hypotests.power_results import Power
from trueodds.lenses.base import Lens
from trueodds.resampling.intervals.closed_form import clopper_pearson_limits

PowerFunction = Callable[[float], float]

LIMITS_LEVEL = 0.95  # confidence level of the limits of a simulated power
MAX_ROWS = 200_000  # maximum number of rows of a simulated data set; beyond, the power is extrapolated
MAX_TOTAL_ROWS = 10**8  # maximum total number of rows of all data sets of one size
MIN_ROWS = 5  # minimum number of rows of a simulated data set
ASYMPTOTIC_NOTE = (
    " The power is asymptotic and deviates by a few percentage points with hundreds of rows; use ⟨simulations=⟩ to "
    "simulate it."
)
POWER_TOLERANCE = 0.005  # tolerance of a simulated power, which is smaller than its simulation error
ASYMPTOTIC_POWER_TOLERANCE = 1e-9  # tolerance of an asymptotic power
MAX_ASYMPTOTIC_ROWS = 1e15  # maximum number of rows if the power is asymptotic
MIN_POWER = 1e-4  # powers closer to 0 or 1 count as this far from them, so that their normal quantile is finite
MAX_GROWTH_FACTOR = 20.0  # factor by which √n grows if the power does not exceed the level
ROUGH_TOLERANCE_FACTOR, ROUGH_DATA_SET_FACTOR = 10, 4  # a rough search has a larger tolerance, and fewer data sets


@dataclass(frozen=True)
class PowerPlan(Settings):
    """Settings of a power analysis: target power, level, effect and kind of miscalibration.

    >>> PowerPlan().n_data_sets(1000, is_single_score=True), PowerPlan().n_data_sets(10**6, is_single_score=True)
    (1000, 200)
    >>> PowerPlan(simulations=50).n_data_sets(1000, is_single_score=True)
    50
    """

    n: Annotated[int, Range(MIN_ROWS, 10**9)] | None = None  # number of rows; None: that of the predictions
    power: Probability = 0.8  # target power
    effect: Probability | None = None  # error to detect; None: the smallest detectable one is computed
    alpha: Level = 0.05  # level of the test
    simulations: Annotated[int, Range(20, 10**8)] | None = None  # number of data sets; None: see `n_data_sets`
    distortion: DistortionKind = "temperature"  # kind of miscalibration
    direction: DistortionDirection = "over"  # overprediction or underprediction

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power <= self.alpha:
            raise InputError(
                "TO205",
                "power must exceed alpha, the rejection rate under the null hypothesis.",
                f"power={self.power} with ⟨alpha={self.alpha}⟩",
                "For example power=0.8.",
            )

    def n_data_sets(self, n: int, *, is_single_score: bool) -> int:
        """Number of simulated data sets of n rows; fewer for large n."""
        return self.simulations or min(1000 if is_single_score else 400, max(200, MAX_TOTAL_ROWS // n))


PLAN_SETTINGS = ("simulations", "distortion", "direction")  # settings of the simulation, beside those of the test


def n_null_draws_for_level(alpha: float, n_independent_labels: int = 1) -> int:
    """Number of null draws of a simulated test, such that α(1 + B) is an integer of at least 10 if α allows.

    Independent labels are tested by Holm's correction, for which `required_resamples` may demand more.

    >>> n_null_draws_for_level(0.05), n_null_draws_for_level(0.01), n_null_draws_for_level(0.05, 20)
    (199, 999, 999)
    """
    n_draws = max(200, 100 * math.ceil(0.1 / alpha)) - 1
    smallest_pvalue = n_independent_labels / (1 + n_draws)
    return n_draws if smallest_pvalue <= alpha / DRAWS_MARGIN else required_resamples(None, n_independent_labels, alpha)


def check_power_settings(test: Any, estimator: Any, width: float | None, test_settings: Mapping[str, Any]) -> None:
    """Raise InputError if settings of an interval width and of a test are combined."""
    specified = [name for name, value in test_settings.items() if value is not None]
    names_coefficient = getattr(test, "name", test) == "cox" and estimator == "ece"
    if width is not None and (specified or not (test == DEFAULT or names_coefficient)):
        got = ", ".join([*specified, *([] if test == DEFAULT else [f"test {describe(test)}"])])
        raise InputError(
            "TO205",
            "width refers to the interval of an estimator, or of a coefficient of the test cox.",
            f"width with {got}",
            "Omit one of them, or pass test='cox' and part='slope'.",
        )
    if width is not None and isinstance(estimator, str) and _is_coefficient(estimator):
        raise InputError(
            "TO205",
            "The calibration slope and intercept are coefficients of the test cox.",
            f"estimator={describe(estimator)}",
            "Pass test='cox' and part='slope', or part='in-the-large', instead of estimator.",
        )
    if width is None and estimator != "ece":
        raise InputError(
            "TO205",
            "estimator requires width, the width of its interval.",
            f"estimator={describe(estimator)} without width",
            "Pass width, or the statistic of a test: test='consistency', ⟨statistic='ece'⟩.",
        )


def _is_coefficient(estimator: str) -> bool:
    """Whether a name stands for the test cox or one of its coefficients, and for no estimator."""
    return estimator == "cox" or resolve_synonym(estimator, ("calibration_in_the_large", "cox")) == ["cox"]


def analyze_power(
    preds: Predictions,
    test: HypothesisTest,
    lens: Lens,
    plan: PowerPlan,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> Power:
    """Smallest detectable error at n rows; with an effect, the power at n rows and the required number of rows."""
    population = Population(preds, lens, Distortion(plan.distortion, plan.direction))
    effect = plan.effect
    if population.max_effect <= 0 or (effect is not None and effect > population.max_effect):
        requested = "any effect" if effect is None else f"effect={effect}"
        raise InputError(
            "TO205",
            "No distortion of this kind has so large an effect on these predictions.",
            f"{requested}, with a largest possible effect of {format_number(population.max_effect)}",
            "Use a smaller effect, or ⟨distortion='shift'⟩.",
        )
    if getattr(test, "resamples", 0) is None:  # the number of draws must not depend on the data set
        n_independent_labels = preds.k if preds.kind == "multilabel" else 1
        n_draws = n_null_draws_for_level(plan.alpha, n_independent_labels)
        test = replace(test, resamples=n_draws)  # type: ignore[call-arg] # it has that setting
    curve = _PowerCurve(test, population, plan, stream_key(rng), progress)
    n = preds.n if plan.n is None else int(plan.n)
    power = curve.smallest_detectable_distortion(n) if effect is None else curve.required_rows(n, float(effect))
    if progress:
        progress(1.0)
    return power


class _PowerCurve:
    """Power of one test as a function of the number of rows n and the size x of the distortion.

    It is asymptotic if the distribution is known, else simulated. `seed` is that of all simulated data sets. `df` are
    the degrees of freedom of the asymptotic distribution, or None if the power is simulated. The last simulation is
    kept, and is the one that a result describes.
    """

    def __init__(
        self,
        test: HypothesisTest,
        population: Population,
        plan: PowerPlan,
        seed: int,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.test, self.population, self.plan, self.seed, self.progress = test, population, plan, seed, progress
        (view,) = population.views if len(population.views) == 1 else (None,)
        asymptotic = isinstance(test, ViewTest) and test.null == "asymptotic" and plan.simulations is None
        asymptotic = asymptotic and population.preds.weight is None  # weights change the asymptotic distribution
        self.df = test.degrees_of_freedom(view) if asymptotic and view is not None else None
        self._n_evaluated = 0.0  # number of finished evaluations of the power, for the progress
        self._simulation: SimulatedPower | None = None

    def power_at(self, n: int, x: float, *, roughly: bool = False) -> float:
        """The power at n rows and distortion x; `roughly` simulates fewer data sets."""
        if self.df is not None:
            return self._asymptotic_power(n, x)
        n_data_sets = self.n_data_sets(n) // ROUGH_DATA_SET_FACTOR if roughly else self.n_data_sets(n)
        if self._simulation is None or self._simulation.n != n or self._simulation.n_data_sets < n_data_sets:
            progress = self._report_progress if self.progress else None
            self._simulation = SimulatedPower(
                self.test, self.population, n, self.plan.alpha, n_data_sets, self.seed, progress
            )
        power = self._simulation.rejection_rate(x, n_data_sets)
        self._n_evaluated += 1
        return power

    def n_data_sets(self, n: int) -> int:
        """Number of simulated data sets of n rows."""
        return self.plan.n_data_sets(n, is_single_score=self.population.is_single_score)

    def _asymptotic_power(self, n: int, x: float) -> float:
        """Power by the non-central χ² distribution.

        The non-centrality is the likelihood ratio statistic of outcomes that equal the true probabilities, for n rows.
        """
        (view,), truth = self.population.views, self.population.true_probabilities(x)
        assert isinstance(self.test, ViewTest)
        assert self.df is not None
        noncentrality = max(self.test.evaluate(view.with_y(truth)).statistic, 0.0) * n / self.population.n_rows
        return float(1 - chndtr(chdtri(self.df, self.plan.alpha), self.df, noncentrality))

    def smallest_detectable_distortion(self, n: int) -> Power:
        """Smallest distortion that has the target power at n rows."""
        self.power_at(n, 0.0)  # makes the simulation of all data sets, which the rough search then reuses
        start = self._distortion_with_effect(min(self._starting_effect(n), 0.9 * self.population.max_effect))
        x, _ = self._solve_for_power(
            lambda x: self.power_at(n, x, roughly=True), start, MAX_DISTORTION, ROUGH_TOLERANCE_FACTOR * self.tolerance
        )
        x, power = self._solve_for_power(lambda x: self.power_at(n, x), x, MAX_DISTORTION, self.tolerance)
        reached = power >= self.plan.power - self.tolerance
        return self._build_result("effect", n, power, self.population.effect(x), None, x, {"reached": reached})

    def required_rows(self, n: int, effect: float) -> Power:
        """Power at n rows, and the number of rows for the target power."""
        x = self._distortion_with_effect(effect)
        max_rows = self.max_rows if self.df is not None else max(self.max_rows, n)
        power = self.power_at(n, x)
        simulation_of_n = self._simulation
        sqrt_rows = math.sqrt(n) * min(max(self._row_growth_factor(power), 0.25), 4.0)
        for roughly in (True, False):
            tolerance = self.tolerance * (ROUGH_TOLERANCE_FACTOR if roughly else 1)
            sqrt_rows, power_at_required = self._solve_for_power(
                lambda root, roughly=roughly: self.power_at(rows_from_sqrt(root), x, roughly=roughly),  # type: ignore[misc]
                sqrt_rows,
                math.sqrt(max_rows),
                tolerance,
            )
        self._simulation = simulation_of_n  # the reported power is that at n rows
        required, details = rows_from_sqrt(sqrt_rows), {"power_at_needed": power_at_required}
        if power_at_required >= self.plan.power - self.tolerance:
            return self._build_result("rows", n, power, effect, required, x, details)
        if power_at_required <= 2 * self.plan.alpha:  # too close to the level, which is the power without an error
            return self._build_result("rows", n, power, effect, None, x, details)
        required = math.ceil(required * self._row_growth_factor(power_at_required) ** 2)
        return self._build_result("rows", n, power, effect, required, x, details | {"extrapolated": True})

    @property
    def tolerance(self) -> float:
        """Tolerance of the power in the root search."""
        return POWER_TOLERANCE if self.df is None else ASYMPTOTIC_POWER_TOLERANCE

    @property
    def max_rows(self) -> float:
        """Maximum number of rows in the root search."""
        return MAX_ROWS if self.df is None else MAX_ASYMPTOTIC_ROWS

    def _solve_for_power(
        self, power_function: PowerFunction, start: float, upper_bound: float, tolerance: float
    ) -> tuple[float, float]:
        """Argument at which `power_function` has the target power, and the power there."""
        return find_root(
            power_function,
            start,
            self.plan.power,
            upper_bound,
            zero_value=self.plan.alpha,
            linearize=_normal_score,
            value_tolerance=tolerance,
            x_tolerance=min(tolerance, 0.01),
        )

    def _row_growth_factor(self, power: float) -> float:
        """Factor by which √n must grow from this power to the target power."""
        gain = _normal_score(power) - _normal_score(self.plan.alpha)
        if gain <= 0:
            return MAX_GROWTH_FACTOR
        return (_normal_score(self.plan.power) - _normal_score(self.plan.alpha)) / gain

    def _starting_effect(self, n: int) -> float:
        """Starting value: the error that the mean of n residuals detects, (z_power + z_1−α) standard errors."""
        view = self.population.views[0]
        outcome_variance = float((view.p * (1 - view.p)).mean()) * (view.p.shape[1] / 2 if view.joint else 1)
        return float((ndtri(self.plan.power) - ndtri(self.plan.alpha)) * math.sqrt(max(outcome_variance, 1e-9) / n))

    def _distortion_with_effect(self, effect: float) -> float:
        """Size of the distortion with this effect."""
        x, _ = find_root(
            self.population.effect,
            effect / self.population.max_effect,
            effect,
            MAX_DISTORTION,
            zero_value=0.0,
            linearize=lambda value: value,
            value_tolerance=1e-6 * effect,
            x_tolerance=1e-9,
        )
        return x

    def _report_progress(self, fraction: float) -> None:
        """Report progress when this fraction of the current simulation is done."""
        assert self.progress is not None
        n_done = self._n_evaluated + fraction
        # The number of evaluations is unknown in advance: the fraction increases with each, and stays below 1.
        self.progress(n_done / (n_done + 3))

    def _build_result(
        self,
        question: str,
        n: int,
        power: float,
        effect: float,
        required: int | None,
        x: float,
        details: dict[str, Any],
    ) -> Power:
        """The result with its limits, settings and notes; `details` are added to the settings."""
        plan, population = self.plan, self.population
        settings: dict[str, Any] = {"distortion": plan.distortion, "direction": plan.direction, "size": x} | details
        if plan.distortion == "shift" and population.preds.k > 2 and population.preds.kind != "multilabel":
            settings["shifted"] = "predicted class"
        limits = None
        if self.df is not None:
            settings |= {"distribution": f"non-central chi-squared, {self.df} degrees of freedom"}
        elif self._simulation is not None:
            limits = power_limits(power, self._simulation.n_data_sets)
            settings |= {"simulations": self._simulation.n_data_sets} | self._simulation.settings_used
        if statistic := getattr(self.test, "statistic", None):
            settings = {"statistic": getattr(statistic, "name", statistic)} | settings
        return Power(
            name=self.test.name,
            question=question,
            lens=str(population.lens),
            n=n,
            alpha=plan.alpha,
            target=plan.power,
            power=power,
            effect=effect,
            required=required,
            limits=limits,
            settings=settings,
            notes=tuple(self._notes(required, question, details)),
        )

    def _notes(self, required: int | None, question: str, details: dict[str, Any]) -> list[Note]:
        """Notes on the kind of error, on rows that no distortion changes, and on extrapolation."""
        notes = [
            Note(
                "TN233",
                "This power applies to similar rows and to this kind of error. It can differ for other errors of the"
                " same size." + (ASYMPTOTIC_NOTE if self.df is not None else ""),
            )
        ]
        n_certain = self.population.distortion.n_certain(self.population.preds)
        if n_certain:
            text = f"{n_certain:,} rows have predicted probabilities of exactly 0 and 1, which no distortion changes."
            notes.append(Note("TN231", text))
        if question == "rows" and (required is None or details.get("extrapolated")):
            text = f"No data sets of more than {max(MAX_ROWS, self.population.n_rows):,} rows were simulated"
            text += (
                "; the required number of rows is extrapolated."
                if required
                else ", and the power at that size is too small for an extrapolation."
            )
            notes.append(Note("TN232", text))
        return notes


def power_limits(power: float, n_data_sets: int) -> Interval:
    """Clopper-Pearson limits of a proportion simulated `n_data_sets` times.

    >>> print(power_limits(0.8, 1000))
    [0.7738, 0.8244] 95%
    """
    low, high = clopper_pearson_limits(round(power * n_data_sets), n_data_sets, (1 - LIMITS_LEVEL) / 2)
    return Interval(float(low), float(high), LIMITS_LEVEL, "clopper-pearson")


def _normal_score(power: float) -> float:
    """Normal quantile of a power, which grows about linearly with the distortion and with √n."""
    return float(ndtri(min(max(power, MIN_POWER), 1 - MIN_POWER)))


def rows_from_sqrt(sqrt_rows: float) -> int:
    """Number of rows, at least MIN_ROWS, from its root, in which the normal score of the power is nearly linear."""
    return max(MIN_ROWS, math.ceil(sqrt_rows * sqrt_rows - 1e-9))


Curve = Callable[[float], float]

MAX_ITERATIONS = 60  # maximum number of evaluations; bisection alone would then reach double precision
OVERSHOOT = 1.02  # factor beyond the extrapolated root, so that one step usually brackets it
MIN_EXPANSION, MAX_EXPANSION = 1.05, 4.0  # limits of the factor by which x grows while the root is not bracketed
MIN_FRACTION = 0.05  # minimum distance of an interpolated x from both ends of the bracket, relative to its width


def find_root(
    curve: Curve,
    start: float,
    level: float,
    upper_bound: float,
    *,
    zero_value: float,
    linearize: Curve,
    value_tolerance: float,
    x_tolerance: float,
) -> tuple[float, float]:
    """Return the x in (0, upper_bound] where `curve` equals `level`, or else `upper_bound`, and the value there.

    `curve` is increasing with value `zero_value` at 0, and `start` is the first x tried. `linearize(value)` is
    approximately linear in x, which speeds up the search. The search stops if a value is within `value_tolerance` of
    the level, or if x is known up to the relative tolerance `x_tolerance`.

    While no value above the level is known, x grows by an extrapolated factor. Afterwards the root is bracketed, and
    the next x is interpolated between both ends of the bracket (regula falsi), but not too close to either.

    >>> tolerances = {"value_tolerance": 1e-9, "x_tolerance": 1e-9}
    >>> x, _ = find_root(lambda x: x * x, 1, 9, 100, zero_value=0, linearize=lambda v: v**0.5, **tolerances)
    >>> round(x, 6)
    3.0
    """
    target = linearize(level)
    lower_x, lower_value = 0.0, zero_value
    upper: tuple[float, float] | None = None  # x and value above the level
    x = min(start, upper_bound)
    for _ in range(MAX_ITERATIONS):
        value = curve(x)
        if abs(value - level) <= value_tolerance:
            return x, value
        if value >= level:
            upper = (x, value)
        elif x >= upper_bound:
            return x, value
        else:
            lower_x, lower_value = x, value
        lower_score = linearize(lower_value)
        if upper is None:
            gain = lower_score - linearize(zero_value)
            factor = (target - linearize(zero_value)) / gain if gain > 0 else MAX_EXPANSION
            x = min(upper_bound, x * min(max(OVERSHOOT * factor, MIN_EXPANSION), MAX_EXPANSION))
            continue
        upper_x, upper_value = upper
        width = upper_x - lower_x
        if width <= x_tolerance * upper_x:
            break
        score_difference = linearize(upper_value) - lower_score
        fraction = (target - lower_score) / score_difference if score_difference > 0 else 0.5
        x = lower_x + width * min(max(fraction, MIN_FRACTION), 1 - MIN_FRACTION)
    assert upper is not None
    return upper
