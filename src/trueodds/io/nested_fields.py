"""Fields inside cells: `prediction.scores`, the classes of a list of classes with scores, and vectors of Spark ML.

A path is the name of a column, a dot, and the name of a field in its cells. A class is a field of a list such as
``[{"label": "cat", "prob": 0.9}, …]``, or of an object such as ``{"classes": ["cat", …], "scores": [0.9, …]}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

NO_FIELD = object()  # stands for a field that does not exist
# Keys of the class and of its score in a list of classes with scores, as BigQuery, Transformers and others write them.
CLASS_KEYS = ("label", "class", "class_name", "name", "category", "value")
SCORE_KEYS = ("prob", "probability", "score", "confidence", "p", "logit")
# Keys of two lists that belong together, as Vertex AI writes them.
CLASS_LIST_KEYS = ("classes", "labels", "displayNames", "display_names", "class_names")
SCORE_LIST_KEYS = ("scores", "probabilities", "probs", "confidences", "logits")
VECTOR_KEYS = frozenset(("type", "size", "indices", "values"))  # of a vector of Spark ML, written as a struct
SPARSE_VECTOR, DENSE_VECTOR = 0, 1  # values of the key "type"


def to_python(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def split_path(name: str, columns: Collection[str]) -> tuple[str, str]:
    """Return the column of a path and the rest of the path, empty for the name of a column or an unknown name.

    A column whose own name has dots takes precedence.

    >>> split_path("a.b.c", ["a", "a.b"]), split_path("a.b", ["a.b", "a"]), split_path("x.y", ["a"])
    (('a.b', 'c'), ('a.b', ''), ('x.y', ''))
    """
    if name not in columns:
        for first, rest in path_splits(name):
            if first in columns:
                return first, rest
    return name, ""


def paths_by_column(names: Iterable[str], columns: Collection[str]) -> dict[str, list[str]]:
    """Return the rests of the paths by column; the rest is empty for a column as a whole.

    >>> paths_by_column(["a.x", "b", "a.y"], ["a", "b"])
    {'a': ['x', 'y'], 'b': ['']}
    """
    paths: dict[str, list[str]] = {}
    for name in names:
        column, path = split_path(name, columns)
        paths.setdefault(column, []).append(path)
    return paths


def path_splits(path: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a path before and after each dot, the longest first part first."""
    for position in reversed([i for i, letter in enumerate(path) if letter == "."]):
        yield path[:position], path[position + 1 :]


class ClassScores:
    """The lists of classes with scores in one cell: each is parsed once, and the classes that are read are counted."""

    def __init__(self) -> None:
        self._scores: dict[int, dict[str, Any] | None] = {}  # by the id of the list
        self._n_read: Counter[int] = Counter()

    def find(self, cell: Any, name: str) -> Any:
        if id(cell) not in self._scores:
            self._scores[id(cell)] = scores_by_class(cell)
        scores = self._scores[id(cell)]
        if scores is None or name not in scores:
            return NO_FIELD
        self._n_read[id(cell)] += 1
        return scores[name]

    def partly_read(self) -> tuple[int, int] | None:
        """Return the number of classes of a list, and how many were read, if several but not all were read."""
        counts = ((len(self._scores[key] or ()), n_read) for key, n_read in self._n_read.items())
        return next(((size, n_read) for size, n_read in counts if 1 < n_read < size), None)


def find_field(cell: Any, path: str, class_scores: ClassScores | None = None) -> Any:
    """Return the field of a cell: `doc.answer` is the field answer inside doc, `resps.0` the first item of a list.

    Returns `NO_FIELD` if there is no such field; a field inside an empty one is empty, too. `class_scores` are those of
    the same cell, if several are read.

    >>> find_field({"doc": {"answer": 2}}, "doc.answer"), find_field([{"label": "a", "prob": 0.3}], "a")
    (2, 0.3)
    """
    class_scores = class_scores or ClassScores()
    original, cell = cell, to_python(cell)
    if cell is None:
        return None
    if isinstance(cell, Mapping) and path in cell:
        return cell[path]
    if not isinstance(cell, (Mapping, list)):
        return NO_FIELD
    if (score := class_scores.find(original, path)) is not NO_FIELD:
        return score
    if isinstance(cell, Mapping):
        for first, rest in path_splits(path):
            if first in cell and (value := find_field(cell[first], rest, class_scores)) is not NO_FIELD:
                return value
        return NO_FIELD
    first, _, rest = path.partition(".")
    if re.fullmatch("[0-9]{1,18}", first) and int(first) < len(cell):
        return find_field(cell[int(first)], rest, class_scores) if rest else cell[int(first)]
    return NO_FIELD


def fields_of_cell(cell: Any) -> list[str]:
    """Return the names of the fields of a cell: the keys of an object, or the classes of a list of classes."""
    if isinstance(cell, Mapping):
        return [str(key) for key in cell]
    return list(scores_by_class(cell) or ())


def scores_by_class(cell: Any) -> dict[str, Any] | None:
    """Return the scores of a cell that names the class of each of them, by class; None for any other cell.

    >>> scores_by_class([{"label": "b", "prob": 0.3}, {"label": "a", "prob": 0.7}])
    {'b': 0.3, 'a': 0.7}
    >>> scores_by_class({"classes": ["b", "a"], "scores": [0.3, 0.7]})
    {'b': 0.3, 'a': 0.7}
    """
    cell = to_python(cell)
    if isinstance(cell, list) and cell and all(isinstance(item, Mapping) for item in cell):
        keys = pair_keys(cell[0])
        if keys is None or not all(key in item for item in cell for key in keys):
            return None
        names, scores = [item[keys[0]] for item in cell], [item[keys[1]] for item in cell]
    elif isinstance(cell, list) and cell and all(isinstance(item, tuple) and len(item) == 2 for item in cell):
        names, scores = [name for name, _ in cell], [score for _, score in cell]  # a map of Arrow
    elif isinstance(cell, Mapping) and (keys := list_keys(cell)) is not None:
        names, scores = (to_python(cell[key]) for key in keys)
        if not (isinstance(names, list) and isinstance(scores, list) and len(names) == len(scores)):
            return None
    else:
        return None
    if not all(isinstance(name, (str, int, float)) for name in map(to_python, names)):
        return None
    by_class = {str(to_python(name)): score for name, score in zip(names, scores, strict=True)}
    return by_class if len(by_class) == len(names) else None


def pair_keys(fields: Collection[str]) -> tuple[str, str] | None:
    """Return the keys of the class and of its score among the fields of an object; None if it has no such fields."""
    return _first_keys(fields, CLASS_KEYS, SCORE_KEYS)


def list_keys(fields: Collection[str]) -> tuple[str, str] | None:
    """Return the keys of the list of classes and of the list of their scores; None if there are no such fields."""
    return _first_keys(fields, CLASS_LIST_KEYS, SCORE_LIST_KEYS)


def _first_keys(fields: Collection[str], *choices: Sequence[str]) -> tuple[str, str] | None:
    first, second = (next((key for key in keys if key in fields), None) for keys in choices)
    return None if first is None or second is None else (first, second)


def sort_classes(names: Iterable[str]) -> list[str]:
    """Return the names of classes in the order of their numbers, or alphabetically, as scikit-learn sorts them.

    >>> sort_classes(["10", "2"]), sort_classes(["no", "10"])
    (['2', '10'], ['10', 'no'])
    """
    listed = list(names)
    return sorted(listed, key=int) if all(name.isdecimal() for name in listed) else sorted(listed)


def is_vector(fields: Collection[str]) -> bool:
    """Return whether these are the fields of a vector of Spark ML."""
    return "type" in fields and "values" in fields and VECTOR_KEYS.issuperset(fields)


def vector_values(cell: Any) -> Any:
    """Return all values of a vector of Spark ML, written as an object or as pyspark's own type; other cells unchanged.

    >>> vector_values({"type": 0, "size": 3, "indices": [1], "values": [0.7]})
    [0.0, 0.7, 0.0]
    """
    if isinstance(cell, Mapping) and is_vector(cell):
        values = to_python(cell["values"])
        if cell["type"] == DENSE_VECTOR:
            return values
        dense = [0.0] * int(cell["size"])
        for i, value in zip(to_python(cell["indices"]), values, strict=True):
            dense[i] = value
        return dense
    if type(cell).__module__.startswith("pyspark.") and hasattr(cell, "toArray"):
        return cell.toArray()
    return cell
