"""Calibration of twelve models against gold labels, majority labels and the votes of many annotators."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.progress import Progress
from trueodds_studies.common.figures import BLUE, RED, make_figure, remove_frame, save_figure
from trueodds_studies.common.resumable_runs import NetworkCell, Row, run_cells
from trueodds_studies.common.study_result import StudyResult, format_range, make_folder
from trueodds_studies.human import crowd_predictions, target_scores
from trueodds_studies.human.crowd_predictions import CROWDS, MODELS, load_crowd
from trueodds_studies.human.target_scores import (
    MAX_ENTROPY_GAP,
    MIN_DISTANCE,
    TARGET_SCORES,
    VOTE_MEASURES,
    score_crowd,
)


@dataclass(frozen=True)
class Plan:
    """Number of rows of each data set (all by default), and of resamples."""

    rows: int | None = None
    resamples: int = 2000
    seed: int = 0


QUICK = Plan(rows=800, resamples=300)

CELL_FORMAT = """Each cell: value [95 % interval] (noise floor: the mean if the model were calibrated)."""
TARGETS_LEGEND = f"""{CELL_FORMAT} target: the gold label, the label with the most votes, or all votes as shares.
confidence: mean largest probability; accuracy: with respect to the target. ECE: confidence, 15 uniform bins. log loss
in nats; its noise floor is the expected score if calibrated."""
VOTES_LEGEND = f"""{CELL_FORMAT} EntCE in nats; corrected: with the Miller-Madow correction. order, size: parts of
human_distance, which add up to it; vote_noise: the subtracted noise, which is the uncorrected score of a model equal to
the population."""
CROWD_LEGEND = """majority is gold: share of rows; tied majority: number of rows in which two classes have the most
votes; unanimous: share of rows; squared noise: mean Σ V(1 − V)/(m − 1). The other columns: scores of the vote shares
against the same number of new votes drawn from them, the best possible result for a model (human_distance is
corrected for noise, and therefore 0)."""
FEWER_VOTES_LEGEND = """votes: number drawn from the votes of each row without replacement. squared distance: mean of
‖P − V‖² without correction; human_distance: the same minus the vote noise."""
CLAIMS_LEGEND = "Quoted or shortened from section 3.3.3 of Pavlovic (2025); ranges are over the models."


def human(
    *,
    quick: bool = False,
    out: str | Path | None = None,
    rng: int = 0,
    methods: Sequence[str] | None = None,
    data: str | Path | None = None,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Twelve models compared with annotators of the same items: CIFAR-10H and ChaosNLI, 47 to 100 votes per row.

    Tables: calibration against gold, majority, and votes; EntCE, DistCE, RankCS, and the distance from the vote
    distribution; the annotators; fewer votes; statements of the paper with our results. Figures: the three targets, and
    fewer votes. `methods` are models. Sources: Pavlovic (2025), section 3.3.3; Baan, Aziz, Plank & Fernández (2022);
    the votes: Peterson et al. (2019), Nie, Zhou & Bansal (2020).
    """
    plan = plan or replace(QUICK if quick else Plan(), seed=rng)
    folder, data_folder = make_folder(out), None if data is None else str(data)
    models = [
        crowd_predictions.check_model(name) for name in methods or (crowd_predictions.QUICK_MODELS if quick else MODELS)
    ]
    file_hashes = crowd_predictions.hash_model_files(models, data_folder)
    for model in models:  # rows that do not match raise an error before anything is measured
        crowd_predictions.load_crowd_predictions(model, data_folder)
    cells = run_cells(
        "human",
        [NetworkCell(model, data_folder) for model in models],
        measure_cell,
        plan,
        folder,
        progress,
        file_hashes,
    )
    rows = target_table(cells)
    finding = StudyResult(
        "human", summarize(cells), rows, plan.__dict__, TARGETS_LEGEND, _further_tables(cells, data_folder, plan)
    )
    if folder is not None:
        finding.save(folder)
        StudyResult("human.targets", finding.sentence, short_target_table(rows), plan.__dict__, TARGETS_LEGEND).save(
            folder
        )
        if importlib.util.find_spec("matplotlib") is not None:  # without it there are only the tables
            draw_targets(rows, folder / "human.svg")
            draw_fewer_votes(fewer_votes_table(cells), folder / "human.votes.svg")
    return finding


def measure_cell(cell: NetworkCell, plan: Plan) -> Mapping[str, Any]:
    """All scores of one model: by target, measures of votes, with fewer votes, and shares for published claims."""
    predictions = crowd_predictions.load_crowd_predictions(cell.net, cell.data, plan.rows, plan.seed)
    return {
        "model": cell.net,
        "targets": target_scores.score_targets(predictions, plan.resamples, plan.seed),
        "people": target_scores.score_votes(predictions, plan.resamples, plan.seed),
        "fewer": target_scores.score_fewer_votes(predictions, plan.seed),
        "claims": target_scores.shares_of_claims(predictions),
    }


def _further_tables(cells: Sequence[Mapping[str, Any]], data: str | None, plan: Plan) -> tuple[StudyResult, ...]:
    """The other tables of the study."""
    names = list(dict.fromkeys(MODELS[cell["model"]].crowd for cell in cells))
    tables = (
        ("people", "Measures of votes for each model.", vote_table(cells), VOTES_LEGEND),
        ("crowds", "Annotators.", crowd_table(names, data, plan.rows, plan.seed), CROWD_LEGEND),
        ("fewer", "The same models evaluated with fewer votes.", fewer_votes_table(cells), FEWER_VOTES_LEGEND),
        ("paper", "Statements of the paper, and our results.", claims_table(cells), CLAIMS_LEGEND),
    )
    return tuple(
        StudyResult(f"human.{name}", sentence, rows, plan.__dict__, legend) for name, sentence, rows, legend in tables
    )


def target_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per model and target: confidence, accuracy, and each score with interval and noise floor."""
    return tuple({**_crowd_and_model(cell), **row} for cell in cells for row in cell["targets"])


def short_target_table(rows: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """The rows of `target_table` with value, interval and noise floor of a score in one column."""
    table = []
    for row in rows:
        entry = {name: row[name] for name in ("data set", "model", "target", "n")}
        entry |= {"confidence": f"{row['confidence']:.3f}", "accuracy": f"{row['accuracy']:.3f}"}
        table.append(entry | {name: _format_estimate(row, name) for name, _ in TARGET_SCORES})
    return tuple(table)


def vote_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per model: each measure of votes with interval and noise floor, and the parts of `human_distance`."""
    table = []
    for cell in cells:
        rows = {row["measure"]: row for row in cell["people"]}
        entry = _crowd_and_model(cell) | {name: _format_estimate(rows[name], "value") for name, _, _ in VOTE_MEASURES}
        distance = rows["human_distance"]
        table.append(entry | {part: f"{distance[f'{part} part']:.4f}" for part in ("order", "size", "vote_noise")})
    return tuple(table)


def crowd_table(names: Sequence[str], data: str | None, rows: int | None, seed: int) -> tuple[dict[str, Any], ...]:
    """One row per data set: agreement of the annotators, and scores of vote shares against as many new votes."""
    table = []
    for name in names:
        votes, gold = load_crowd(name, data, rows, seed)
        m = votes.sum(axis=1)
        V = votes / m[:, None]
        sorted_votes = np.sort(votes, axis=1)
        noise = (V * (1 - V)).sum(axis=1) / (m - 1)
        row = {"data set": name, "n": len(gold), "classes": votes.shape[1], "votes": f"{m.min()} to {m.max()}"}
        row |= {
            "majority is gold": float((votes.argmax(axis=1) == gold).mean()),
            "tied majority": int((sorted_votes[:, -1] == sorted_votes[:, -2]).sum()),
            "unanimous": float((sorted_votes[:, -1] == m).mean()),
            "share of the majority": float(V.max(axis=1).mean()),
            "squared noise": float(noise.mean()),
        }
        table.append(row | score_crowd(votes, seed))
    return tuple(table)


def fewer_votes_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per model and number of votes: the measures of votes, and the squared distance without correction."""
    return tuple({**_crowd_and_model(cell), **row} for cell in cells for row in cell["fewer"])


def claims_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """Statements of Pavlovic (2025), section 3.3.3, with our results."""
    by_crowd = {name: [cell for cell in cells if MODELS[cell["model"]].crowd == name] for name in CROWDS}

    def describe_share(name: str, condition: str) -> str:
        """The percentage of rows with a condition, over the models of each data set."""
        phrases = [
            f"{crowd}: {format_range((100 * cell['claims'][name] for cell in crowd_cells), 0)} % of rows"
            for crowd, crowd_cells in by_crowd.items()
            if crowd_cells
        ]
        return f"{condition}: {'; '.join(phrases)}"

    def describe_votes(name: str) -> str:
        """A measure with two votes per row and with all of them, over the models of each data set."""
        phrases = []
        for crowd, crowd_cells in by_crowd.items():
            if crowd_cells:
                two_votes = [cell["fewer"][0][name] for cell in crowd_cells]
                all_votes = [cell["fewer"][-1][name] for cell in crowd_cells]
                phrases.append(f"{crowd}: {format_range(two_votes)} with 2 votes, {format_range(all_votes)} with all")
        return "; ".join(phrases)

    distance_text = f"and total variation above {MIN_DISTANCE:g}"
    return (
        {
            "published": (
                "Entropy is invariant to the permutations of the probability values: EntCE can be 0 for another"
                " distribution"
            ),
            "our result": describe_share("entropy alike", f"entropies within {MAX_ENTROPY_GAP:g} nats"),
        },
        {
            "published": "(same statement)",
            "our result": describe_share("another class though entropy alike", "and another largest class"),
        },
        {"published": "(same statement)", "our result": describe_share("far though entropy alike", distance_text)},
        {
            "published": "RankCS doesn't care about the actual size of the probability values",
            "our result": describe_share("order alike", "same order of the classes as the votes"),
        },
        {"published": "(same statement)", "our result": describe_share("far though order alike", distance_text)},
        {
            "published": (
                "It relies heavily on having an accurate estimate of the human judgement distribution, which requires a"
                " large number of annotations per item"
            ),
            "our result": f"DistCE {describe_votes('DistCE')}",
        },
        {"published": "(same statement)", "our result": f"human_distance {describe_votes('human_distance')}"},
    )


def summarize(cells: Sequence[Row]) -> str:
    """In words, ECE by target and distance from the vote distribution, over the models of each data set."""
    phrases = []
    for name in CROWDS:
        crowd_cells = [cell for cell in cells if MODELS[cell["model"]].crowd == name]
        if not crowd_cells:
            continue
        errors_by_target: dict[str, list[float]] = {row["target"]: [] for row in crowd_cells[0]["targets"]}
        for cell in crowd_cells:
            for row in cell["targets"]:
                errors_by_target[row["target"]].append(row["ECE"])
        distance = [
            row["value"] for cell in crowd_cells for row in cell["people"] if row["measure"] == "human_distance"
        ]
        errors = ", ".join(
            f"{format_range(values)} against {'the votes' if target == 'votes' else target}"
            for target, values in errors_by_target.items()
        )
        phrases.append(f"{name}: ECE {errors}; squared distance from the vote distribution {format_range(distance)}.")
    return " ".join(phrases)


def _crowd_and_model(cell: Row) -> dict[str, Any]:
    """The first two columns of the tables."""
    return {"data set": MODELS[cell["model"]].crowd, "model": cell["model"]}


def _format_estimate(row: Row, name: str) -> str:
    """Format a column of a row as `value [low, high] (noise floor)`."""
    between = f" [{row[f'{name} low']:.3f}, {row[f'{name} high']:.3f}]" if f"{name} low" in row else ""
    noise_floor = row[f"{name} noise floor"]
    return f"{row[name]:.4f}{between}" + ("" if noise_floor is None else f" ({noise_floor:.4f})")


COLORS = {"gold": "#c79a2b", "majority": RED, "votes": BLUE}


def draw_targets(rows: Sequence[Row], path: Path) -> None:
    """Draw each score by model, with a dot per target, intervals, and noise floors."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    positions = {model: i for i, model in enumerate(reversed(models))}
    figure = make_figure((11, 1.6 + 0.42 * len(models)))
    axes = figure.subplots(1, len(TARGET_SCORES), sharey=True)
    for ax, (name, _) in zip(axes, TARGET_SCORES, strict=True):
        for offset, (target, color) in zip((0.24, 0.0, -0.24), COLORS.items(), strict=True):
            target_rows = [row for row in rows if row["target"] == target]
            heights = [positions[row["model"]] + offset for row in target_rows]
            ax.hlines(
                heights,
                [row[f"{name} low"] for row in target_rows],
                [row[f"{name} high"] for row in target_rows],
                color=color,
                lw=1,
            )
            ax.plot([row[name] for row in target_rows], heights, "o", ms=4.5, color=color, label=f"against {target}")
            ax.plot([row[f"{name} noise floor"] for row in target_rows], heights, "|", ms=7, color=color, alpha=0.7)
        ax.set_title(name, fontsize=10)
        ax.set_xlim(left=0)
        ax.grid(axis="x", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        remove_frame(ax)
    axes[0].set_yticks(range(len(models)), list(positions), fontsize=8)
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(axes[0].plot([], [], "|", ms=7, color="#555555")[0])
    names.append("noise floor")
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_fewer_votes(rows: Sequence[Row], path: Path) -> None:
    """Draw DistCE and the squared distance, with and without vote noise, against votes per row; one line per model."""
    figure = make_figure((11, 3.8))
    panels = ("DistCE", "squared distance", "human_distance")
    models = list(dict.fromkeys(row["model"] for row in rows))
    axes = figure.subplots(1, len(panels))
    for ax, name in zip(axes, panels, strict=True):
        for model in models:
            model_rows = [row for row in rows if row["model"] == model]
            color = BLUE if model_rows[0]["data set"] == "ChaosNLI" else RED
            ax.plot(
                [row["votes"] for row in model_rows],
                [row[name] for row in model_rows],
                "o-",
                ms=3,
                lw=1,
                color=color,
                alpha=0.7,
            )
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("votes per row", fontsize=9)
        ax.set_ylim(bottom=0)
        ax.grid(axis="y", color="#dddddd", lw=0.6)
        ax.set_axisbelow(True)
        remove_frame(ax)
    for crowd, color in (("CIFAR-10H", RED), ("ChaosNLI", BLUE)):
        axes[0].plot([], [], "o-", ms=3, lw=1, color=color, label=crowd)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    save_figure(figure, path)
