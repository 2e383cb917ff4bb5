"""What becomes of single images? The five likeliest classes of each, before and after, as in the paper's first figure."""

from __future__ import annotations

import numpy as np

from trueodds.api.verbs import fit
from trueodds.core.typing import Array
from trueodds_studies.imaging.nets import CLASSES, load_softmax, parts, split
from trueodds_studies.imaging.published_values import AFTER, FIGURE
from trueodds_studies.resumable_runs import Row

TOP = 5


def shown(net: str, data: str | None, seed: int) -> tuple[tuple[Row, ...], str]:
    """The rows of the images to show, and how the printed numbers are found again; the fit is the first split's."""
    y, P = load_softmax(net, data)
    learn, _ = parts(net, data, seed, 0)
    Q = fit(learn, "mcllo").predict_proba(P)
    alike = such(P)
    learned = set(split(len(y), seed, 0)[0].tolist())
    rows = [
        {
            "image": image,
            "why": why,
            "label": CLASSES[y[image]],
            "part": "learning" if image in learned else "held out",
            "class": CLASSES[j],
            "before": float(P[image, j]),
            "after": float(Q[image, j]),
        }
        for image, why in chosen(len(y), alike, Q)
        for j in np.argsort(-P[image], kind="stable")[:TOP]
    ]
    return tuple(rows), _describe(net, alike, Q)


def such(P: Array) -> Array:
    """The images called airplane with the printed probability, to two digits.

    >>> such(np.array([[0.944, 0.056], [0.936, 0.064], [0.949, 0.051]])).tolist()
    [0, 1]
    """
    return np.flatnonzero((P.argmax(axis=1) == 0) & (np.round(P[:, 0], 2) == np.round(P.dtype.type(FIGURE[4526]), 2)))


def chosen(n: int, alike: Array, Q: Array) -> list[tuple[int, str]]:
    """Those that the paper numbers, the second also counted from one, and the one that is nearest to what it shows."""
    images = [(image, "the paper's number") for image in FIGURE if image < n]
    images += [(4525, "4526 counted from one")] if n > 4525 else []
    if len(alike):
        nearest = int(alike[np.abs(Q[alike, 0] - AFTER).argmin()])
        images.append((nearest, f"nearest to the paper's {FIGURE[4526]:.2f} → {AFTER:.2f}"))
    return images


def _describe(net: str, alike: Array, Q: Array) -> str:
    if not len(alike):
        return f"No image is called airplane with {FIGURE[4526]:.2f} by {net}."
    after = Q[alike, 0]
    same = int((np.round(after, 2) == AFTER).sum())
    return (
        f"{len(alike)} images are called airplane with {FIGURE[4526]:.2f} by {net}; MCLLO makes that {after.min():.2f} to "
        f"{after.max():.2f}, in {same} of them the paper's {AFTER:.2f}."
    )
