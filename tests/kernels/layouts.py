"""The ways an array can lie in memory, each with the same values."""

import numpy as np


def c_order(x):
    return np.ascontiguousarray(x)


def fortran(x):
    return np.asfortranarray(x)


def strided(x):
    wide = np.zeros((2 * len(x), *x.shape[1:]), dtype=x.dtype)
    wide[::2] = x
    return wide[::2]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x):
    raw = np.zeros(x.nbytes + 1, dtype=np.uint8)
    moved = raw[1:].view(x.dtype).reshape(x.shape)
    moved[...] = x
    return moved


LAYOUTS = (c_order, fortran, strided, read_only, unaligned)
