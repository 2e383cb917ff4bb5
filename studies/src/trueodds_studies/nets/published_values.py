"""What do papers print of these nets, or say of theirs, and what is found here?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds_studies.base import counted, span
from trueodds_studies.nets.catalog import NETS
from trueodds_studies.resumable_runs import Row

# The authors' own program on these very predictions: Widmann, Lindsten & Zachariah (2019), all classes, total variation,
# github.com/devmotion/CalibrationPaper, experiments/src/PyTorch-CIFAR10 (ten bins of each probability; trees of 100 rows).
SAME_NETS = {
    "densenet121": {"uniform 10": 0.06607267260685959, "tree, 100 rows": 0.029532869835646354},
    "inception_v3": {"uniform 10": 0.06622328174328848, "tree, 100 rows": 0.02741172314725122},
    "resnet18": {"uniform 10": 0.07488154767161405, "tree, 100 rows": 0.03644622574154901},
    "vgg16_bn": {"uniform 10": 0.06611851748458285, "tree, 100 rows": 0.029127032299151583},
}
FROM = """Sentences quoted or shortened from section 5.2 of Vaicenavicius et al. (2019), whose LeNet, DenseNet and ResNet are other nets than these;
the numbers are from the program of Widmann, Lindsten and Zachariah (2019) on these very predictions."""


def compare_with_papers(cells: Sequence[Row]) -> tuple[Row, ...]:
    """Sentence by sentence, then number by number."""
    statements = [("the importance of the binning scheme", _schemes(cells))]
    if any(a is not b and NETS[a["net"]].task == NETS[b["net"]].task for a in cells for b in cells):
        statements.append(("(the same)", _orders(cells)))
    statements.append(("in regions with frequent predictions the deviation is small", _frequent(cells)))
    statements.append(
        ("one-dimensional diagrams with data-dependent bins do not seem to support reliability", _outside(cells))
    )
    statements.append(
        ("5th and 95th percentiles in consistency resamples: one bin in ten outside if calibrated", _bars(cells))
    )
    for cell in cells:
        for bins, printed in SAME_NETS.get(cell["net"], {}).items():
            ours = value(cell, "canonical", bins)
            statements.append((f"{cell['net']}, all classes, {bins}: {printed:.6f}", f"{ours:.6f}"))
    return tuple({"the papers": first, "here": second} for first, second in statements)


def value(cell: Row, lens: str, bins: str, distance: str = "tv") -> float:
    """One number of a net."""
    for row in cell["errors"]:
        if (row["lens"], row["bins"], row["distance"]) == (lens, bins, distance):
            return float(row["value"])
    raise LookupError(f"{cell['net']} has no {lens}, {bins}, {distance}")


def _schemes(cells: Sequence[Row]) -> str:
    """By how much the bins change the number."""
    phrases = []
    for lens in ("confidence", "groups", "canonical"):
        lens_cells = [cell for cell in cells if any(row["lens"] == lens for row in cell["errors"])]
        if lens_cells:
            ratios = [value(cell, lens, "tree, 10 rows") / value(cell, lens, "uniform 10") for cell in lens_cells]
            phrases.append(f"{lens}: {span(ratios, 2)}")
    return f"a tree of 10 rows gives so many times what ten uniform bins give, total variation: {'; '.join(phrases)}"


def _orders(cells: Sequence[Row]) -> str:
    """How many pairs of nets of one task stand the other way round by other bins."""
    pairs = turned = 0
    for i, one in enumerate(cells):
        for other in cells[:i]:
            if NETS[one["net"]].task == NETS[other["net"]].task:
                signs = {
                    value(one, "confidence", bins) < value(other, "confidence", bins)
                    for bins in ("uniform 10", "tree, 100 rows", "tree, 10 rows")
                }
                pairs, turned = pairs + 1, turned + (len(signs) > 1)
    return f"{turned} of {counted(pairs, 'pair')} of nets of one task change order of confidence error with the bins"


def _frequent(cells: Sequence[Row]) -> str:
    """The corner where most predictions lie, beside the others."""
    corners = [cell["frequent"] for cell in cells if cell["frequent"] is not None]
    if not corners:
        return "no net here has three outcomes or more"
    there, elsewhere = ([corner[name] for corner in corners] for name in ("there", "elsewhere"))
    less = sum(a < b for a, b in zip(there, elsewhere, strict=True))
    strays, full = (sum(corner[name] for corner in corners) for name in ("beyond", "beyond there"))
    return (
        f"in the three fullest of 25 cells the mean distance is {span(there)}, in the others {span(elsewhere)}; "
        f"smaller there in {less} of {counted(len(corners), 'net')}; of {counted(strays, 'cell')} beyond chance {full} are among the fullest"
    )


def _outside(cells: Sequence[Row]) -> str:
    phrases = []
    for bins in ("uniform", "tree"):
        shares = [cell["outside"][bins]["outside"] / cell["outside"][bins]["bins"] for cell in cells]
        phrases.append(f"{bins} {span((100 * share for share in shares), 0)} %")
    return f"bins outside the 90 % bars, by net: {', '.join(phrases)}"


def _bars(cells: Sequence[Row]) -> str:
    out, bins = (np.sum([cell["outside"]["tree"][name] for cell in cells]) for name in ("outside", "bins"))
    return f"{int(out)} of {counted(int(bins), 'bin')} of the trees are outside"
