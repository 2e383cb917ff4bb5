"""What do all pairs of rows say of labels that were drawn anew?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.pairing.forms import Gram
from trueodds.kernels import in_blocks
from trueodds.kernels.matches import add_matches, differences, read
from trueodds.kernels.pairs import pulls

VECTOR_WIDTH = 8  # draws are filled up to a multiple, so that few stand alone behind the last vector


def beyond(gram: Gram, P: Array, w: Array, own: Array, observed: Array, labels: Array) -> Array:
    r"""Σ w_i w_j k_ij (e_y − p)_i·(e_y − p)_j over the pairs i ≠ j of each draw, less the same for the labels seen.

    The product is 1{y_i = y_j} − p_i[y_j] − p_j[y_i] + p_i·p_j: only which labels are equal has to be asked of every
    pair and draw, in whole numbers; the rest is a table of what each label of a row adds, Σ_j w_j k_ij p_j. Rows whose
    label is the one seen in every draw go into that table too, so that sure predictions cost little. Equal labels give
    exactly 0, and the rounding is that of similarities at 2⁻⁴³ of the largest weights.

    `labels` (n, draws) and `observed` (n,) are numbers of columns of P (n, m), similarities lie in [0, 1], and `own` (n,)
    is that of a row with itself where it counts as a pair, else 0.
    """
    heaviest = float(w.max())
    v = w / heaviest
    even = bool((v == 1).all())
    ends = -(1 + labels.shape[1]) % VECTOR_WIDTH
    first = observed[:, None].astype(labels.dtype)
    joined = np.concatenate([first, labels, np.repeat(first, ends, axis=1)], axis=1)
    moving = (labels != first).any(axis=1)
    every = bool(moving.all())
    rank = np.concatenate([[0], np.cumsum(moving)])  # how many moving rows come before each
    among, blocks = (joined, gram.block_starts) if every else (joined[moving], rank[gram.block_starts[moving]])
    XT = np.ascontiguousarray((P - np.where(moving[:, None], 0, observed[:, None] == np.arange(P.shape[1]))).T)

    def work(a: int, _b: int) -> tuple[Array, Array, slice]:
        rows, earlier, k = gram.strip(a)
        if not even:
            k = k * v[rows, None] * v[earlier]
        pulled = pulls(k, XT[:, earlier], rows.start - earlier.start)
        if not every:
            k = k[np.ix_(moving[rows], moving[earlier])]
        sums = np.zeros((2, joined.shape[1]), dtype=np.int64)
        add_matches(k, int(rank[rows.start]), int(rank[earlier.start]), blocks, among, sums)
        return sums, pulled, earlier

    sums = np.zeros((2, joined.shape[1]), dtype=np.int64)
    table = (own * v**2)[:, None] * P
    for matched, pulled, of in in_blocks(work, len(gram.spans), 1):
        sums += matched
        table[of] += pulled.T
    change = differences(sums) - read(table, joined)
    return np.asarray(2 * heaviest**2 * change[: labels.shape[1]])
