"""What becomes of the ECE of nine samples if the bins are made smaller?"""

from __future__ import annotations

from typing import Any

from trueodds.api.verbs import measure
from trueodds_studies.base import counted
from trueodds_studies.toys.base import Panel, Toy, row, table, tidy
from trueodds_studies.toys.nine import counts, samples

EVERY = (1, 2, 5, 10, 15, 20, 100)

LEGEND = """bins: of equal width on [0, 1]. empty: bins without a sample, which add nothing. alone: bins with a single sample, whose accuracy is
0 or 1. ECE: of the same nine samples each time. noise floor: the mean ECE of a calibrated model that says the same, over 999 draws."""


def bin_row(bins: int, seed: int) -> dict[str, Any]:
    """The nine samples in so many bins."""
    estimate, bin_counts = measure(samples(), "ece", lens="confidence", bins=bins, rng=seed), counts(bins)
    return {
        "bins": bins, "empty": bin_counts.count(0), "alone": bin_counts.count(1), "fullest": max(bin_counts),
        "ECE": tidy(estimate.value), "noise floor": estimate.noise_floor,
    }  # fmt: skip


def more_bins(seed: int) -> Toy:
    """The text's section 3.2 up to bins of equal width."""
    lines = [bin_row(bins, seed) for bins in EVERY]
    by_bins, bin_counts = {line["bins"]: line for line in lines}, counts(10)
    alone = " and ".join(str(b + 1) for b, n in enumerate(bin_counts) if n == 1)
    rows = (
        row("more bins", "ECE, 1 bin", None, by_bins[1]["ECE"],
            "Mean confidence against accuracy: too sure here and too modest there cancel."),
        row("more bins", "ECE, 10 bins instead of 5", None, by_bins[10]["ECE"],
            f"Nothing changed but the bins, and {by_bins[5]['ECE']:.3f} became {by_bins[10]['ECE']:.3f}."),
        row("more bins", "empty bins, of 10", 5, by_bins[10]["empty"], "Half of the bins add nothing."),
        row("more bins", "samples in bin 8, of 10", 1, bin_counts[7], "What this bin saw is one picture."),
        row("more bins", "samples in bin 9, of 10", 1, bin_counts[8],
            f"The text says that bins 8 and 9 hold one sample each; of these nine it is bins {alone}."),
        row("more bins", "ECE, 100 bins", None, by_bins[100]["ECE"],
            "Every sample by itself: how far its confidence is from 1 if it is right, from 0 if not."),
        row("more bins", "noise floor, 100 bins", None, by_bins[100]["noise floor"],
            "A calibrated model gets about the same: read an ECE beside its floor, and never two of different bins."),
    )  # fmt: skip
    low, high = (pick(line["ECE"] for line in lines) for pick in (min, max))
    sentence = f"The same nine samples: ECE from {low:.3f} to {high:.3f} by the number of bins."
    panel = Panel(
        "More bins, another number",
        "ECE",
        {name: {counted(line["bins"], "bin"): line[name] for line in lines} for name in ("ECE", "noise floor")},
    )
    return Toy("more bins", rows, (table("more_bins", sentence, lines, LEGEND),), panel)
