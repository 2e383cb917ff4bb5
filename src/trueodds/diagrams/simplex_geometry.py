"""Coordinates of the probability simplex: triangle, tetrahedron, cell outlines, ellipses and projection."""

from __future__ import annotations

import numpy as np

from trueodds.binning.median_variance import Tree
from trueodds.binning.partition import Partition, resolve_n_bins
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins, FittedPartition
from trueodds.lenses.view import View

# Corners (3, 2) of a triangle with unit sides; the first outcome is at the left corner.
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
# Corners (4, 3) of a tetrahedron with unit sides, centered at the origin: the first three outcomes form the base, the
# fourth is at the top.
TETRAHEDRON = np.array(
    [
        [-0.5, -np.sqrt(3) / 6, -np.sqrt(6) / 12],
        [0.5, -np.sqrt(3) / 6, -np.sqrt(6) / 12],
        [0.0, np.sqrt(3) / 3, -np.sqrt(6) / 12],
        [0.0, 0.0, np.sqrt(6) / 4],
    ]
)
CIRCUMRADIUS = float(np.sqrt(6) / 4)  # distance of a corner of the tetrahedron from its center
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # the corners that each edge of the tetrahedron joins
MIN_AREA = 1e-9  # smaller areas are those of a line or a point


def to_triangle(p: Array) -> Array:
    """Vectors of three probabilities (…, 3) as points (…, 2) of the triangle."""
    return np.asarray(p) @ TRIANGLE


def cell_bounds(
    partition: Partition, fitted_partition: FittedPartition, view: View, bin_index: Array
) -> tuple[Array, Array] | None:
    """Lower and upper bounds of each probability in each cell, (cells, m) each; None if cells are not boxes."""
    if isinstance(fitted_partition, Tree):
        return _leaf_bounds(fitted_partition, view.partition_values.shape[1])
    if not isinstance(partition, (Uniform, SimplexGrid)):
        return None
    k = resolve_n_bins(partition.bins, view)
    row_of_cell = np.zeros(fitted_partition.size, dtype=np.intp)
    row_of_cell[bin_index] = np.arange(len(bin_index))  # any row of a cell determines its bounds
    axis_bins = Bins(np.arange(k + 1) / k, partition.closed)
    cell_coordinates = np.stack([axis_bins.index(column) for column in view.partition_values[row_of_cell].T], axis=1)
    return cell_coordinates / k, (cell_coordinates + 1) / k


def cell_outline(low: Array, high: Array) -> Array:
    """Vertices (v, 3) of the part of the triangle within the bounds; empty if it has no area.

    >>> cell_outline(np.array([0.5, 0.0, 0.0]), np.ones(3)).tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]
    """
    shape = np.eye(3)
    # Sutherland-Hodgman clipping: cut the polygon at each bound in turn.
    for axis in range(3):
        for sign, bound in ((1.0, low[axis]), (-1.0, high[axis])):
            distance_inside = sign * (shape[:, axis] - bound)  # of each vertex from the bound; negative outside
            if (distance_inside >= 0).all():
                continue
            vertices = []
            for corner, next_corner, a, b in zip(
                shape, np.roll(shape, -1, axis=0), distance_inside, np.roll(distance_inside, -1), strict=True
            ):
                if a >= 0:
                    vertices.append(corner)
                if (a > 0 > b) or (a < 0 < b):  # the side from this corner to the next crosses the bound
                    vertices.append(corner + (next_corner - corner) * (a / (a - b)))
            shape = np.array(vertices).reshape(-1, 3)
            shape = shape[np.abs(shape - np.roll(shape, 1, axis=0)).max(axis=1, initial=0) > MIN_AREA]
    x, y = to_triangle(shape).T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    return shape if area > MIN_AREA else np.empty((0, 3))


def covariance_ellipses(covariance: Array, radius: float) -> tuple[Array, Array, Array]:
    """Lengths of the major and minor axes, and angle, of the ellipses of covariances (cells, 3, 3) in the triangle.

    The results are (cells,) each. `radius` is in standard deviations, lengths are in sides of the triangle, and the
    angle of the major axis with the horizontal is in degrees.
    """
    values, vectors = np.linalg.eigh(TRIANGLE.T @ covariance @ TRIANGLE)
    minor, major = 2 * radius * np.sqrt(np.maximum(values, 0.0)).T
    long_axis = vectors[:, :, 1]
    return major, minor, np.degrees(np.arctan2(long_axis[:, 1], long_axis[:, 0]))


def projection_matrix(azimuth: float, elevation: float) -> Array:
    """The matrix (4, 3) that maps four probabilities to the directions right, up and toward the viewer.

    Azimuth 0 faces the side of the first two outcomes; elevation 90 looks down from the fourth.
    """
    a, e = np.radians([azimuth, elevation])
    right = np.array([np.cos(a), np.sin(a), 0.0])
    depth_axis = np.array([-np.sin(a), np.cos(a), 0.0])  # away from the viewer, horizontally
    vertical_axis = np.sin(e) * depth_axis + np.cos(e) * np.array([0.0, 0.0, 1.0])
    view_axis = -np.cos(e) * depth_axis + np.sin(e) * np.array([0.0, 0.0, 1.0])
    return TETRAHEDRON @ np.stack([right, vertical_axis, view_axis], axis=1)


def hidden_edges(corners: Array) -> list[bool]:
    """Which of EDGES lie behind the tetrahedron; `corners` (4, 3) are to the right, up and toward the viewer."""
    faces_away = []  # whether the face opposite each corner faces away
    for corner in range(4):
        a, b, c = (corners[other] for other in range(4) if other != corner)
        normal = np.cross(b - a, c - a)
        outward = normal if normal @ (corners[corner] - a) < 0 else -normal
        faces_away.append(outward[2] < -1e-9)
    # An edge belongs to the two faces opposite the corners that it does not touch.
    return [all(faces_away[corner] for corner in range(4) if corner not in edge) for edge in EDGES]


def _leaf_bounds(tree: Tree, m: int) -> tuple[Array, Array]:
    """Lower and upper bounds of the leaves of a tree on m probabilities, (leaves, m) each."""
    low, high = np.zeros((len(tree.axis), m)), np.ones((len(tree.axis), m))
    for node, axis in enumerate(tree.axis):  # children come after their parent
        if axis < 0:
            continue
        for child in (tree.low[node], tree.high[node]):
            low[child], high[child] = low[node], high[node]
        high[tree.low[node], axis] = low[tree.high[node], axis] = tree.cut[node]
    leaf = np.array(tree.axis) < 0
    return low[leaf], high[leaf]
