"""Simulations and figures of MCLLO where the odds of one class are shifted: power, parameter estimates and ECE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import chdtrc, chdtri, chndtr

from trueodds.binning.uniform import Uniform
from trueodds.calibrators._glm.parameter_covariance import NORMAL_CRITICAL_VALUE
from trueodds.calibrators.mcllo import MclloMap
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.hypotests._glm.mcllo_likelihood import MclloModel, mcllo_statistics
from trueodds.lenses.view import View
from trueodds_studies.common.figures import make_panels, save_figure
from trueodds_studies.common.rejection_rates import LEVELS, clopper_pearson
from trueodds_studies.common.resumable_runs import Row

TEST_FORMS = {"lrt": "likelihood-ratio", "score": "score"}  # form of the test, by prefix of the columns
PARAMETERS = ("gamma_1", "tau_1", "gamma_2", "tau_2")  # the third class is the baseline
K = 3  # classes
DF = 2 * (K - 1)  # degrees of freedom of the test
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class PowerPlan(Protocol):
    """The settings of the plan of the study that this simulation uses."""

    sets: int
    binned: int  # number of these data sets for which the ECE is computed
    seed: int


@dataclass(frozen=True)
class PowerCell:
    """One shift and one number of rows."""

    n: int
    delta: float

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"delta {self.delta:g} | {self.n}"

    @property
    def true_parameters(self) -> Array:
        """True (γ₁, τ₁, γ₂, τ₂): only the odds of class 1 against class 3 are wrong, δ times the predicted ones."""
        return np.array([1.0, np.log(self.delta), 1.0, 0.0])

    def rows(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Predictions P from Dirichlet(1, 1, 1) and one-hot labels Y, (n, 3) each, by inverse transform sampling."""
        P = rng.dirichlet(np.ones(K), self.n)
        # Cumulative true probabilities of the first and the first two classes, not normalized.
        first, first_two = self.delta * P[:, 0], self.delta * P[:, 0] + P[:, 1]
        u = rng.random(self.n) * (first_two + P[:, 2])
        y = (first <= u).astype(np.int64) + (first_two <= u)
        return P, np.eye(K)[y]


def expected_divergence(delta: float, k: int = K) -> float:
    r"""E KL(q ‖ p) in nats, where p ~ Dirichlet(1, …, 1) and q has δ times the odds of the first class.

    Only :math:`p_1 \sim \mathrm{Beta}(1, k - 1)` matters: with :math:`q_1 = \delta p_1 / (1 + (\delta - 1)p_1)`,
    KL is :math:`q_1 \log\delta - \log(1 + (\delta - 1)p_1)`. Computed by Gauss-Legendre quadrature.

    >>> expected_divergence(1.0), round(expected_divergence(1.25), 6)
    (0.0, 0.004262)
    """
    p = (1 + _NODES) / 2
    normalization = 1 + (delta - 1) * p
    density = (k - 1) * (1 - p) ** (k - 2) / 2
    return float(_WEIGHTS @ (density * (delta * p / normalization * np.log(delta) - np.log(normalization))))


def predict_power(n: int, delta: float, level: float) -> tuple[float, float]:
    """The noncentrality 2n E KL(q ‖ p), and the probability that noncentral χ² exceeds the quantile of the central one.

    >>> ncp, power = predict_power(50, 1.0, 0.05)
    >>> ncp, round(power, 10)
    (0.0, 0.05)
    """
    ncp = 2 * n * expected_divergence(delta)
    return ncp, float(1 - chndtr(chdtri(DF, level), DF, ncp))


def measure_power(cell: PowerCell, plan: PowerPlan) -> Mapping[str, Any]:
    """The row of one cell: rejection rates, bias and coverage of the parameters, and ECE before and after the map.

    The map fitted on one data set is evaluated on the next one, which has new rows.
    """
    samples: dict[str, list[Any]] = {
        name: [] for name in ("lrt", "score", "errors", "covers", "before", "after", "new")
    }
    ece = BinnedError(Uniform(int(np.ceil(np.sqrt(cell.n)))))
    calibration_map = None  # of the previous data set
    for repetition in range(plan.sets):
        rng = np.random.default_rng([plan.seed, cell.n, round(1000 * cell.delta), repetition])
        P, Y = cell.rows(rng)
        model = MclloModel.from_view(View(p=P, y=Y), -1, 0.0, "mcllo")
        for name, form in TEST_FORMS.items():
            samples[name].append(chdtrc(model.score_whitening.shape[1], mcllo_statistics(model, form)[form]))
        errors = model.mle.theta - cell.true_parameters
        if model.covariance is not None:
            samples["errors"].append(errors)
            samples["covers"].append(np.abs(errors) <= NORMAL_CRITICAL_VALUE * np.sqrt(model.covariance.diagonal()))
        if repetition >= plan.binned:
            continue
        samples["before"].append(_confidence_ece(ece, P, Y))
        samples["after"].append(_confidence_ece(ece, model.fitted_probs, Y))
        if calibration_map is not None:
            samples["new"].append(_confidence_ece(ece, calibration_map.apply(P), Y))
        calibration_map = MclloMap(model.mle.theta[1::2], model.mle.theta[::2], 2, 1e-12)
    return _power_row(cell, plan.sets, {name: np.array(values) for name, values in samples.items()})


def _confidence_ece(ece: BinnedError, P: Array, Y: Array) -> float:
    """ECE of the confidence for predictions P and one-hot labels Y, (n, K) each; ties go to the first class."""
    predicted = P.argmax(axis=1)
    rows = np.arange(len(P))
    return float(ece.value(View(p=P[rows, predicted], y=Y[rows, predicted])))


def _power_row(cell: PowerCell, sets: int, samples: Mapping[str, Array]) -> dict[str, Any]:
    """The row of a cell from the values of all data sets, (data sets,) or (data sets, parameters)."""
    row: dict[str, Any] = {
        "n": cell.n,
        "delta": cell.delta,
        "sets": sets,
        "ncp": predict_power(cell.n, cell.delta, 0.05)[0],
    }
    for name, level in LEVELS.items():
        for form in TEST_FORMS:
            hits = int((samples[form] <= level).sum())
            low, high = clopper_pearson(hits, sets)
            row |= {f"{form}{name}": hits / sets, f"{form}{name}_low": low, f"{form}{name}_high": high}
        row[f"predicted{name}"] = predict_power(cell.n, cell.delta, level)[1]
    row["finite"] = len(samples["errors"])
    for j, name in enumerate(PARAMETERS if len(samples["errors"]) else ()):
        errors, covers = samples["errors"][:, j], int(samples["covers"][:, j].sum())
        low, high = clopper_pearson(covers, len(errors))
        row |= {f"bias_{name}": float(errors.mean()), f"sd_{name}": float(errors.std())}
        row |= {f"coverage_{name}": covers / len(errors), f"low_{name}": low, f"high_{name}": high}
    for name in ("before", "after", "new"):
        if len(samples[name]):
            quartiles = np.quantile(samples[name], (0.25, 0.5, 0.75)).tolist()
            row |= dict(zip((f"{name}_q1", f"{name}_q2", f"{name}_q3"), quartiles, strict=True))
            row[name] = float(samples[name].mean())
    row["lowered"] = float((samples["after"] < samples["before"]).mean())
    if len(samples["new"]):
        row["lowered_new"] = float((samples["new"] < samples["before"][1:]).mean())
    return row


SHIFT_COLORS = ("#7f7f7f", "#9ec3e6", "#4f8cc9", "#1f5a96", "#0b2545")  # from no shift to the largest one
PARAMETER_LABELS = {"gamma_1": "γ₁", "tau_1": "τ₁", "gamma_2": "γ₂", "tau_2": "τ₂"}


def draw_power(rows: Sequence[Row], path: Path) -> None:
    """Draw rejection rates at 5 and 1 % with their limits against n; lines are the noncentral χ² distribution."""
    figure, axes = make_panels(1, 2, (10, 4.2), sharey=True)
    n = np.geomspace(min(row["n"] for row in rows), max(row["n"] for row in rows), 100)
    for ax, name, level in zip(axes.flat, ("5", "1"), (0.05, 0.01), strict=True):
        ax.axhline(level, color="#cccccc", lw=0.8)
        for delta, color in _shift_colors(rows):
            own = [row for row in rows if row["delta"] == delta]
            ax.plot(
                n, [predict_power(size, delta, level)[1] for size in n], color=color, lw=1.2, label=f"δ = {delta:g}"
            )
            draw_rate(ax, [row["n"] for row in own], own, (f"lrt{name}", f"lrt{name}_low", f"lrt{name}_high"), color)
            ax.plot([row["n"] for row in own], [row[f"score{name}"] for row in own], "x", ms=5, color=color)
        set_rows_axis(ax, rows, f"rejected at {name} %")
        ax.set(ylim=(-0.02, 1.02), title=f"at {name} %")
    handles = axes.flat[0].get_legend_handles_labels()[0]
    kinds = [
        axes.flat[0].plot([], [], mark, color="#555555", label=text)[0]
        for mark, text in (("-", "non-central χ²"), ("o", "likelihood ratio, 99 % limits"), ("x", "score"))
    ]
    figure.legend(handles=[*handles, *kinds], loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_parameters(rows: Sequence[Row], path: Path) -> None:
    """Draw the bias of each parameter (top) and the coverage of its interval (bottom), with 99 % limits."""
    finite_rows = [row for row in rows if row["finite"]]
    figure, axes = make_panels(2, 4, (11, 5.4), sharex=True, sharey="row")
    for column, name in enumerate(PARAMETERS):
        bias, covers = axes[0, column], axes[1, column]
        bias.axhline(0, color="#cccccc", lw=0.8)
        covers.axhline(0.95, color="#cccccc", lw=0.8)
        for j, (delta, color) in enumerate(_shift_colors(finite_rows)):
            own = [row for row in finite_rows if row["delta"] == delta]
            x = np.array([row["n"] for row in own]) * 1.06 ** (j - 2)
            error = [2.576 * row[f"sd_{name}"] / np.sqrt(row["finite"]) for row in own]
            bias.errorbar(x, [row[f"bias_{name}"] for row in own], error, fmt="o", ms=3, lw=1, color=color)
            draw_rate(
                covers, x, own, tuple(f"{what}_{name}" for what in ("coverage", "low", "high")), color, f"δ = {delta:g}"
            )
        bias.set_title(PARAMETER_LABELS[name])
        set_rows_axis(covers, rows, "covered by 95 % interval" if column == 0 else "")
        bias.set_ylabel("bias" if column == 0 else "")
    figure.legend(
        *axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    save_figure(figure, path)


def draw_ece(rows: Sequence[Row], path: Path) -> None:
    """Draw ECE before recalibration, after it, and on new rows: quartiles at one n, and mean differences by n."""
    sizes = sorted({row["n"] for row in rows})
    middle = sizes[len(sizes) // 2 - 1] if len(sizes) > 1 else sizes[0]
    figure, (quartile_ax, fitted_ax, new_ax) = make_panels(1, 3, (11, 4.2))
    styles = {
        "before": ("as stated", "#7f7f7f"),
        "after": ("after, rows of the fit", "#d99a2b"),
        "new": ("after, new rows", "#2f6da8"),
    }
    for j, (name, (text, color)) in enumerate(styles.items()):
        shown = [row for row in rows if row["n"] == middle and f"{name}_q1" in row]
        x = np.arange(len(shown)) + 0.22 * (j - 1)
        quartile_ax.vlines(
            x, [row[f"{name}_q1"] for row in shown], [row[f"{name}_q3"] for row in shown], color=color, lw=5, alpha=0.45
        )
        quartile_ax.plot(x, [row[f"{name}_q2"] for row in shown], "o", ms=4, color=color, label=text)
    quartile_ax.set_xticks(range(len(list(_shift_colors(rows)))), [f"{delta:g}" for delta, _ in _shift_colors(rows)])
    quartile_ax.set(xlabel="δ", ylabel="ECE", ylim=(0, None), title=f"n = {middle:,}: quartiles and medians")
    for ax, name, title in (
        (fitted_ax, "after", "after − before, rows of the fit"),
        (new_ax, "new", "after − before, new rows"),
    ):
        ax.axhline(0, color="#cccccc", lw=0.8)
        for delta, color in _shift_colors(rows):
            shown = [row for row in rows if row["delta"] == delta and name in row]
            gaps = [row[name] - row["before"] for row in shown]
            ax.plot([row["n"] for row in shown], gaps, "o-", ms=4, lw=1, color=color, label=f"δ = {delta:g}")
        set_rows_axis(ax, rows, "mean ECE")
        ax.set_title(title)
    ends = [ax.get_ylim() for ax in (fitted_ax, new_ax)]
    for ax in (fitted_ax, new_ax):
        ax.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
    handles = [handle for ax in (quartile_ax, fitted_ax) for handle in ax.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    save_figure(figure, path)


def _shift_colors(rows: Sequence[Row]) -> list[tuple[float, str]]:
    """Each shift with its color, from the smallest to the largest."""
    shifts = sorted({row["delta"] for row in rows})
    return [
        (delta, SHIFT_COLORS[round(i * (len(SHIFT_COLORS) - 1) / max(1, len(shifts) - 1))])
        for i, delta in enumerate(shifts)
    ]


def draw_rate(ax: Any, x: Any, rows: Sequence[Row], names: Sequence[str], color: str, label: str | None = None) -> None:
    """Draw a rate against x as dots with lines to its limits; `names` are the columns of rate, low and high."""
    middle, low, high = (np.array([row[name] for row in rows]) for name in names)
    ax.vlines(x, low, high, color=color, lw=1)
    ax.plot(x, middle, "o", ms=3.5, color=color, label=label)


def set_rows_axis(ax: Any, rows: Sequence[Row], ylabel: str) -> None:
    """Set a logarithmic axis for the number of rows."""
    from matplotlib.ticker import NullLocator

    sizes = sorted({row["n"] for row in rows})
    ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="rows", ylabel=ylabel)
