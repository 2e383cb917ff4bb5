"""The tables of the study of people, from what was measured of each model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds_studies.base import span
from trueodds_studies.people.crowds import CROWDS, MODELS, crowd
from trueodds_studies.people.human_scores import ALIKE, HUMAN, MIN_DISTANCE, SCORES, itself
from trueodds_studies.resumable_runs import Row


def target_rows(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Every model against gold, majority and votes, side by side."""
    return tuple({**_whose(cell), **row} for cell in cells for row in cell["targets"])


def short(rows: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """The same to read: value, interval and floor in one cell."""
    table = []
    for row in rows:
        entry = {name: row[name] for name in ("crowd", "model", "against", "n")}
        entry |= {"confidence": f"{row['confidence']:.3f}", "right": f"{row['right']:.3f}"}
        table.append(entry | {name: _format_estimate(row, name) for name, _ in SCORES})
    return tuple(table)


def people(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per model, a column per measure of votes: value, interval, floor."""
    table = []
    for cell in cells:
        rows = {row["measure"]: row for row in cell["people"]}
        entry = _whose(cell) | {name: _format_estimate(rows[name], "value") for name, _, _ in HUMAN}
        distance = rows["human_distance"]
        table.append(entry | {part: f"{distance[f'{part} part']:.4f}" for part in ("order", "size", "vote_noise")})
    return tuple(table)


def crowds(names: Sequence[str], data: str | None, rows: int | None, seed: int) -> tuple[dict[str, Any], ...]:
    """What each crowd is like, and what its own shares would score against as many fresh votes."""
    table = []
    for name in names:
        votes, gold = crowd(name, data, rows, seed)
        m = votes.sum(axis=1)
        V = votes / m[:, None]
        first = np.sort(votes, axis=1)
        noise = (V * (1 - V)).sum(axis=1) / (m - 1)
        row = {"crowd": name, "n": len(gold), "classes": votes.shape[1], "votes": f"{m.min()} to {m.max()}"}
        row |= {
            "majority is gold": float((votes.argmax(axis=1) == gold).mean()),
            "tied majority": int((first[:, -1] == first[:, -2]).sum()),
            "of one mind": float((first[:, -1] == m).mean()),
            "share of the majority": float(V.max(axis=1).mean()),
            "squared noise": float(noise.mean()),
        }
        table.append(row | itself(votes, seed))
    return tuple(table)


def fewer(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Every model by every number of votes."""
    return tuple({**_whose(cell), **row} for cell in cells for row in cell["fewer"])


def claims(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Beside each sentence of the paper, what these models show."""
    by_crowd = {name: [cell for cell in cells if MODELS[cell["model"]].crowd == name] for name in CROWDS}

    def ours(name: str, of: str) -> str:
        phrases = [
            f"{whose}: {span((100 * cell['claims'][name] for cell in of_crowd), 0)} % of rows"
            for whose, of_crowd in by_crowd.items()
            if of_crowd
        ]
        return f"{of}: {'; '.join(phrases)}"

    def fell(name: str) -> str:
        phrases = []
        for whose, of_crowd in by_crowd.items():
            if of_crowd:
                two_votes, every = ([_at(cell, which)[name] for cell in of_crowd] for which in (0, -1))
                phrases.append(f"{whose}: {span(two_votes)} by 2 votes, {span(every)} by all")
        return "; ".join(phrases)

    distance_text = f"and total variation above {MIN_DISTANCE:g}"
    return (
        {
            "the paper": "Entropy is invariant to the permutations of the probability values: EntCE can be 0 for another distribution",
            "here": ours("entropy alike", f"entropies within {ALIKE:g} nats"),
        },
        {"the paper": "(the same)", "here": ours("another class though entropy alike", "and another largest class")},
        {"the paper": "(the same)", "here": ours("far though entropy alike", distance_text)},
        {
            "the paper": "RankCS doesn't care about the actual size of the probability values",
            "here": ours("order alike", "order as the votes'"),
        },
        {"the paper": "(the same)", "here": ours("far though order alike", distance_text)},
        {
            "the paper": "It relies heavily on having an accurate estimate of the human judgement distribution, which requires a large number of annotations per item",
            "here": f"DistCE {fell('DistCE')}",
        },
        {"the paper": "(the same)", "here": f"human_distance {fell('human_distance')}"},
    )


def sentence(cells: Sequence[Row]) -> str:
    """What it comes to: ECE by target, and how far from the crowd, for each crowd."""
    phrases = []
    for name in CROWDS:
        crowd_cells = [cell for cell in cells if MODELS[cell["model"]].crowd == name]
        if not crowd_cells:
            continue
        of: dict[str, list[float]] = {row["against"]: [] for row in crowd_cells[0]["targets"]}
        for cell in crowd_cells:
            for row in cell["targets"]:
                of[row["against"]].append(row["ECE"])
        distance = [
            row["value"] for cell in crowd_cells for row in cell["people"] if row["measure"] == "human_distance"
        ]
        errors = ", ".join(f"{span(values)} against {'the votes' if t == 'votes' else t}" for t, values in of.items())
        phrases.append(f"{name}: ECE {errors}; squared distance from the crowd {span(distance)}.")
    return " ".join(phrases)


def _whose(cell: Row) -> dict[str, Any]:
    return {"crowd": MODELS[cell["model"]].crowd, "model": cell["model"]}


def _at(cell: Row, which: int) -> Row:
    row: Row = cell["fewer"][which]
    return row


def _format_estimate(row: Row, name: str) -> str:
    """Value [low, high] (floor)."""
    between = f" [{row[f'{name} low']:.3f}, {row[f'{name} high']:.3f}]" if f"{name} low" in row else ""
    noise_floor = row[f"{name} floor"]
    return f"{row[name]:.4f}{between}" + ("" if noise_floor is None else f" ({noise_floor:.4f})")
