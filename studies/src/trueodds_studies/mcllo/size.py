"""How often does MCLLO reject where every probability is right? By χ² and by redrawn labels, on flat, sharp and real vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.special import chdtrc

from trueodds.api.verbs import test
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds_studies.data import arrays, find_file, stamp
from trueodds_studies.mcllo.power import LEVELS
from trueodds_studies.rates import above, clopper_pearson
from trueodds_studies.resumable_runs import Row
from trueodds_studies.sizes import hits, with_verdicts
from trueodds_studies.stated import Dirichlet, Stated

FILE = "plambda_cifar10_vgg16.npz"
MIN_NETWORK_PROB = 1e-6  # of the network's probabilities, before labels are drawn from them
MIN_SIMULATED_PROB = 1e-12  # the same of simulated ones: 1 − p of two classes would else be 0 now and then
FORMS = ("likelihood ratio", "score", "score, redrawn")


class Plan(Protocol):
    """What of a plan a cell reads."""

    sized: int
    resamples: int
    seed: int


@dataclass(frozen=True)
class Network(Stated):
    """The predictions of a network on its test rows, floored: n of them are drawn, none twice."""

    folder: str = ""
    stamp: str = ""  # of the file

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Vectors of k probabilities, most of them sharp."""
        P = _predictions(self.folder, self.stamp)
        return P[rng.choice(len(P), n, replace=False)]


@lru_cache(maxsize=1)
def _predictions(folder: str, _stamp: str) -> Array:
    """Read once for each file that lay there."""
    return _floored(arrays(FILE, folder, "probs")["probs"].astype(np.float64), MIN_NETWORK_PROB)


class Simulated(Dirichlet):
    """Vectors from a symmetric Dirichlet law, floored."""

    def stated(self, rng: np.random.Generator, n: int) -> Array:
        """Vectors of k probabilities."""
        return _floored(super().stated(rng, n), MIN_SIMULATED_PROB)


FLAT = tuple(
    Simulated(f"Dirichlet({a:g}) {k}", k=k, alpha=a) for k in (2, 3, 7, 10) for a in (1.0, 0.2 if k == 10 else 0.3)
)


def _floored(P: Array, min_prob: float) -> Array:
    P = np.maximum(P, min_prob)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def network(data: str | Path | None) -> Network | None:
    """VGG16 on CIFAR-10; None where nobody named a folder and the usual one has no such file."""
    try:
        path = find_file(FILE, data)
    except InputError:
        if data is not None:
            raise
        return None
    folder, mark = str(path.parent), stamp(FILE, path.parent)
    _predictions(folder, mark)  # here, so that a file without them is refused before anything is simulated
    return Network("VGG16", k=10, folder=folder, stamp=mark)


@dataclass(frozen=True)
class Cell:
    """One design at one number of rows."""

    world: Stated
    n: int

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.world.name} | {self.n}"


def cells(rows: Sequence[int], classes: Sequence[int], data: str | Path | None) -> Iterator[Cell]:
    """Every design with as many classes, at each number of rows."""
    real = network(data)
    for world in (*FLAT, *([real] if real else [])):
        if world.k in classes:
            yield from (Cell(world, n) for n in rows)


def read(designs: Sequence[Cell]) -> dict[str, str]:
    """The stamp of each file that some design needs."""
    real = next((cell.world for cell in designs if isinstance(cell.world, Network)), None)
    return {FILE: real.stamp} if real else {}


def measure_cell(cell: Cell, plan: Plan) -> Row:
    """What the three forms of the test said of many data sets, all of the same ones."""
    pvalues, doubted = np.full((3, plan.sized), np.nan), np.zeros(plan.sized, dtype=bool)
    for repetition in range(plan.sized):
        rng = np.random.default_rng([plan.seed, *cell.world.name.encode(), cell.n, repetition])
        preds = cell.world.rows(rng, cell.n)
        asymptotic = test(preds, "mcllo", lens="canonical")
        drawn = test(preds, "mcllo", lens="canonical", null="redraw", resamples=plan.resamples, rng=rng)
        joint = asymptotic.parts["joint"]
        pvalues[:, repetition] = asymptotic.pvalue, chdtrc(joint["df"], joint["score"]), drawn.pvalue
        doubted[repetition] = any(note.code == "TN212" for note in asymptotic.notes)
    # Redrawn labels are exact, and no note doubts them.
    doubts = (doubted, doubted, np.zeros_like(doubted))
    return {"forms": [_row(cell, *form) for form in zip(FORMS, pvalues, doubts, strict=True)]}


def form_verdicts(measured: Sequence[Row]) -> tuple[Row, ...]:
    """One row per form, design and number of rows, with verdicts that hold for all of them together."""
    return with_verdicts([row for cell_row in measured for row in cell_row["forms"]])


def _row(cell: Cell, form: str, pvalues: Array, doubted: Array) -> dict[str, Any]:
    row: dict[str, Any] = {
        "design": cell.world.name.split()[0], "K": cell.world.k, "n": cell.n, "test": form, "sets": len(pvalues),
    }  # fmt: skip
    for name, level in LEVELS.items():
        rejected = pvalues <= level + 1e-12
        low, high = clopper_pearson(int(rejected.sum()), len(pvalues))
        row |= {f"size{name}": float(rejected.mean()), f"low{name}": low, f"high{name}": high}
        row[f"silent{name}"] = float(rejected[~doubted].mean()) if (~doubted).any() else None
    return row | {"doubt": float(doubted.mean()), "undefined": float(np.isnan(pvalues).mean())}


def by_design(rows: Sequence[Row]) -> tuple[Row, ...]:
    """One row per design and number of rows, the forms side by side: what a page has room for."""
    table: dict[tuple[str, int, int], dict[str, Any]] = {}
    for row in rows:
        where = (row["design"], row["K"], row["n"])
        one = table.setdefault(where, dict(zip(("design", "K", "n"), where, strict=True)) | {"noted": ""})
        for name in LEVELS:
            size, low, high = (100 * row[f"{what}{name}"] for what in ("size", "low", "high"))
            mark = " *" * above(hits(row, name), row["sets"], LEVELS[name], 2 * len(rows))
            one[f"{row['test']}, {name} %"] = f"{size:.1f} [{low:.1f}, {high:.1f}]{mark}"
        if row["test"] == FORMS[0]:
            one["noted"] = f"{100 * row['doubt']:.0f} %"
    order = ("design", "K", "n", *(f"{form}, {name} %" for name in LEVELS for form in FORMS), "noted")
    return tuple({name: one[name] for name in order} for one in table.values())


def sentence(rows: Sequence[Row]) -> str:
    """What the sizes come to."""
    words = []
    for form in FORMS:
        own = [row for row in rows if row["test"] == form]
        worst = max(own, key=lambda row: row["size5"])
        beyond = [row["verdict"] for row in own if row["verdict"].startswith("exceeds")]
        note = f", {beyond.count('exceeds, said')} of them with the note TN212" if beyond and form != FORMS[2] else ""
        words.append(
            f"the {form} {'by χ² ' * (form != FORMS[2])}exceeds its level in {len(beyond)} of {len(own)} cells{note}, "
            f"at worst {100 * worst['size5']:.1f} % at 5 % ({worst['design']}, K = {worst['K']}, n = {worst['n']:,})"
        )
    missing = (
        "" if any(row["design"] == "VGG16" for row in rows) else " VGG16 is left out: its predictions are not there."
    )
    return f"Where every probability is right {'; '.join(words)}.{missing}"
