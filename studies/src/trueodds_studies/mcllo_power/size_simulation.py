"""Simulations of the size of the MCLLO tests for calibrated predictions, Dirichlet and of a network, and its figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import chdtrc

from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds_studies.common.data_files import find_file, hash_file, load_npz
from trueodds_studies.common.figures import make_panels, save_figure
from trueodds_studies.common.rejection_rates import (
    LEVELS,
    add_verdicts,
    clopper_pearson,
    count_rejections,
    exceeds_level,
)
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.common.simulated_worlds import DirichletWorld, PowerTransformedWorld

NETWORK_FILE = "plambda_cifar10_vgg16.npz"
MIN_NETWORK_PROB = 1e-6  # smaller probabilities of the network are replaced before labels are drawn
MIN_SIMULATED_PROB = 1e-12  # the same for Dirichlet vectors, as 1 − p of two classes can be exactly 0
SIZE_FORMS = ("likelihood ratio", "score", "score, redrawn")


class SizePlan(Protocol):
    """The settings of the plan of the study that this simulation uses."""

    sized: int  # data sets
    resamples: int
    seed: int


@dataclass(frozen=True)
class NetworkWorld(PowerTransformedWorld):
    """Predictions of a network for its test rows with a smallest probability, sampled without replacement."""

    folder: str = ""  # of the file
    file_hash: str = ""  # SHA-256

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, k), most of them confident."""
        P = _load_predictions(self.folder, self.file_hash)
        return P[rng.choice(len(P), n, replace=False)]


@lru_cache(maxsize=1)
def _load_predictions(folder: str, _file_hash: str) -> Array:
    """Cached by the hash of the file."""
    return _apply_min_prob(load_npz(NETWORK_FILE, folder, "probs")["probs"].astype(np.float64), MIN_NETWORK_PROB)


class FlooredDirichletWorld(DirichletWorld):
    """Vectors from a symmetric Dirichlet distribution, with a smallest probability."""

    def draw_predictions(self, rng: np.random.Generator, n: int) -> Array:
        """n vectors (n, k)."""
        return _apply_min_prob(super().draw_predictions(rng, n), MIN_SIMULATED_PROB)


DIRICHLET_WORLDS = tuple(
    FlooredDirichletWorld(f"Dirichlet({a:g}) {k}", k=k, alpha=a)
    for k in (2, 3, 7, 10)
    for a in (1.0, 0.2 if k == 10 else 0.3)
)


def _apply_min_prob(P: Array, min_prob: float) -> Array:
    """Replace smaller probabilities, and normalize each row of P (n, K)."""
    P = np.maximum(P, min_prob)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def load_network(data: str | Path | None) -> NetworkWorld | None:
    """VGG16 on CIFAR-10; None if no folder is given and the default one does not contain the file."""
    try:
        path = find_file(NETWORK_FILE, data)
    except InputError:
        if data is not None:
            raise
        return None
    folder, file_hash = str(path.parent), hash_file(NETWORK_FILE, path.parent)
    _load_predictions(folder, file_hash)  # a file without them raises an error before anything is simulated
    return NetworkWorld("VGG16", k=10, folder=folder, file_hash=file_hash)


@dataclass(frozen=True)
class SizeCell:
    """One design and one number of rows."""

    world: PowerTransformedWorld
    n: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.world.name} | {self.n}"


def size_cells(rows: Sequence[int], classes: Sequence[int], data: str | Path | None) -> Iterator[SizeCell]:
    """Every design with these numbers of classes and of rows."""
    network = load_network(data)
    for world in (*DIRICHLET_WORLDS, *([network] if network else [])):
        if world.k in classes:
            yield from (SizeCell(world, n) for n in rows)


def hash_data_files(cells: Sequence[SizeCell]) -> dict[str, str]:
    """The SHA-256 hash of the file of the network if a cell requires it."""
    network = next((cell.world for cell in cells if isinstance(cell.world, NetworkWorld)), None)
    return {NETWORK_FILE: network.file_hash} if network else {}


def measure_size(cell: SizeCell, plan: SizePlan) -> Row:
    """Rejection rates of the three forms of the test on the same data sets, one row per form."""
    pvalues, doubted = np.full((3, plan.sized), np.nan), np.zeros(plan.sized, dtype=bool)
    for repetition in range(plan.sized):
        rng = np.random.default_rng([plan.seed, *cell.world.name.encode(), cell.n, repetition])
        preds = cell.world.rows(rng, cell.n)
        asymptotic = test(preds, "mcllo", lens="canonical")
        drawn = test(preds, "mcllo", lens="canonical", null="redraw", resamples=plan.resamples, rng=rng)
        joint = asymptotic.parts["joint"]
        pvalues[:, repetition] = asymptotic.pvalue, chdtrc(joint["df"], joint["score"]), drawn.pvalue
        doubted[repetition] = any(note.code == "TN212" for note in asymptotic.notes)
    # Redrawn labels give the exact null distribution, to which note TN212 does not apply.
    doubted_by_form = (doubted, doubted, np.zeros_like(doubted))
    rows = [
        _size_row(cell, form, form_pvalues, form_doubted)
        for form, form_pvalues, form_doubted in zip(SIZE_FORMS, pvalues, doubted_by_form, strict=True)
    ]
    return {"forms": rows}


def add_form_verdicts(cell_rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per form of the test, design and number of rows, with the column `verdict`."""
    return add_verdicts([row for cell_row in cell_rows for row in cell_row["forms"]])


def _size_row(cell: SizeCell, form: str, pvalues: Array, doubted: Array) -> dict[str, Any]:
    """Rejection rates of one form from its p-values and the mask of note TN212, (data sets,) each."""
    row: dict[str, Any] = {
        "design": cell.world.name.split()[0],
        "K": cell.world.k,
        "n": cell.n,
        "test": form,
        "sets": len(pvalues),
    }
    for name, level in LEVELS.items():
        rejected = pvalues <= level + 1e-12
        low, high = clopper_pearson(int(rejected.sum()), len(pvalues))
        row |= {f"size{name}": float(rejected.mean()), f"low{name}": low, f"high{name}": high}
        row[f"unnoted{name}"] = float(rejected[~doubted].mean()) if (~doubted).any() else None
    return row | {"noted": float(doubted.mean()), "undefined": float(np.isnan(pvalues).mean())}


def world_table(rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per design and number of rows, with the forms side by side."""
    table: dict[tuple[str, int, int], dict[str, Any]] = {}
    for row in rows:
        key = (row["design"], row["K"], row["n"])
        entry = table.setdefault(key, {"design": row["design"], "K": row["K"], "n": row["n"], "noted": ""})
        for name in LEVELS:
            size, low, high = (100 * row[f"{column}{name}"] for column in ("size", "low", "high"))
            exceeds = exceeds_level(count_rejections(row, name), row["sets"], LEVELS[name], 2 * len(rows))
            mark = " *" if exceeds else ""
            entry[f"{row['test']}, {name} %"] = f"{size:.1f} [{low:.1f}, {high:.1f}]{mark}"
        if row["test"] == SIZE_FORMS[0]:
            entry["noted"] = f"{100 * row['noted']:.0f} %"
    order = ("design", "K", "n", *(f"{form}, {name} %" for name in LEVELS for form in SIZE_FORMS), "noted")
    return tuple({name: entry[name] for name in order} for entry in table.values())


def summarize_size(rows: Sequence[Row]) -> str:
    """In words, how many cells of each form exceed their level, and the largest size."""
    phrases = []
    for form in SIZE_FORMS:
        form_rows = [row for row in rows if row["test"] == form]
        worst = max(form_rows, key=lambda row: row["size5"])
        exceeding = [row["verdict"] for row in form_rows if row["verdict"].startswith("exceeds")]
        note = (
            f", {exceeding.count('exceeds, noted')} of them with the note TN212"
            if exceeding and form != SIZE_FORMS[2]
            else ""
        )
        phrases.append(
            f"the {form} {'by χ² ' if form != SIZE_FORMS[2] else ''}exceeds its level in {len(exceeding)} of"
            f" {len(form_rows)} cells{note}, at worst {100 * worst['size5']:.1f} %"
            f" at 5 % ({worst['design']}, K = {worst['K']}, n = {worst['n']:,})"
        )
    missing = (
        ""
        if any(row["design"] == "VGG16" for row in rows)
        else " VGG16 is not included because its predictions are not available."
    )
    return f"For calibrated predictions, {'; '.join(phrases)}.{missing}"


FORM_COLORS = {"likelihood ratio": "#b5402a", "score": "#d99a2b", "score, redrawn": "#2f6da8"}


def draw_size(rows: Sequence[Row], path: Path) -> None:
    """Draw the size at 5 and 1 % with 99 % limits; a panel per level, a line per cell."""
    cells = list(dict.fromkeys((row["design"], row["K"], row["n"]) for row in rows))
    positions = {cell: len(cells) - i for i, cell in enumerate(cells)}
    figure, axes = make_panels(1, 2, (10, 1.6 + 0.25 * len(cells)), sharey=True)
    for ax, name in zip(axes.flat, ("5", "1"), strict=True):
        ax.axvline(int(name), color="#cccccc", lw=1)
        for j, (form, color) in enumerate(FORM_COLORS.items()):
            own = [row for row in rows if row["test"] == form]
            y = [positions[row["design"], row["K"], row["n"]] + 0.25 * (1 - j) for row in own]
            ax.hlines(
                y,
                [100 * row[f"low{name}"] for row in own],
                [100 * row[f"high{name}"] for row in own],
                color=color,
                lw=1,
            )
            ax.plot(
                [100 * row[f"size{name}"] for row in own],
                y,
                "o",
                ms=3,
                color=color,
                label=form if form == SIZE_FORMS[2] else f"{form} by χ²",
            )
        ax.set(xlabel="percent of data sets", title=f"rejected at {name} %")
        ax.set_xlim(0, None)
    names = [f"{design}, K = {k}, n = {n:,}" for design, k, n in cells]
    axes.flat[0].set_yticks(list(positions.values()), names, fontsize=8)
    axes.flat[0].set_ylim(0.3, len(cells) + 0.7)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)
