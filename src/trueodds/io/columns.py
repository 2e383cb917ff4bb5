"""Match column names and patterns to the columns of a table, and outcome columns to probability columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trueodds.core.errors import InputError, Note, argument, describe
from trueodds.core.printable import escape_marks
from trueodds.core.suggestions import did_you_mean
from trueodds.data.class_names import class_numbers, classes_for_numeric_labels, numbered_columns_note
from trueodds.io.column_suggestions import (
    suggest_alike_matches,
    suggest_numbered_columns,
    suggest_outcome_columns,
    suggest_separator,
    suggest_similar_columns,
)
from trueodds.io.nested_fields import (
    NO_FIELD,
    fields_of_cell,
    find_field,
    list_keys,
    scores_by_class,
    sort_classes,
    split_path,
    to_python,
    vector_values,
)
from trueodds.io.table import ColumnSource, refuse_repeated_columns

NUMBERS = (int, float, Decimal)  # types of cells that are numbers


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The columns to read and their roles."""

    kind: str  # of outcome: "classes", "confidence", "votes" or "multilabel"
    probs: tuple[str, ...]  # columns of probabilities, logits or confidence
    suffixes: tuple[str, ...] | None  # class names in the column names; None if there are none
    # Columns of the label, votes, 0/1 outcomes or correctness; empty to apply a calibrator. Of a confidence also two
    # columns, the label and the predicted label, whose equality is the correctness.
    truth: tuple[str, ...]
    weight: str | None = None  # column of the weights
    group: tuple[str, ...] = ()  # columns of subgroups
    cluster: str | None = None  # column of clusters of dependent rows
    row_id: str | None = None  # column that identifies the rows
    logits: bool = False  # whether `probs` are columns of logits
    rows_name_classes: bool = False  # whether each row names its classes, in an order of its own
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        optional_columns = [name for name in (self.weight, *self.group, self.cluster, self.row_id) if name is not None]
        return tuple(dict.fromkeys([*self.probs, *self.truth, *optional_columns]))

    @property
    def probs_keyword(self) -> str:
        """The keyword of `read` for the columns `probs`, if they are not a confidence."""
        return "logits" if self.logits else "probs"

    @property
    def numeric(self) -> frozenset[str]:
        """Columns that a format without types parses as numbers; labels, groups and clusters may be text."""
        truth = self.truth if self.kind in ("votes", "multilabel") else ()
        return frozenset([*self.probs, *truth, *([self.weight] if self.weight else [])])

    def describe(self) -> dict[str, Any]:
        truth = {"votes": "votes", "multilabel": "multilabel", "confidence": "correct"}.get(self.kind, "label")
        probs = "confidence" if self.kind == "confidence" and not self.logits else self.probs_keyword
        columns: dict[str, Any] = {probs: list(self.probs)}
        if self.kind == "confidence" and len(self.truth) == 2:
            columns |= {"label": self.truth[0], "predicted": self.truth[1]}
        elif self.truth:
            columns[truth] = list(self.truth) if self.kind in ("votes", "multilabel") else self.truth[0]
        columns |= {"weight": self.weight} if self.weight else {}
        columns |= {"group": list(self.group)} if self.group else {}
        columns |= {"cluster": self.cluster} if self.cluster else {}
        return columns | ({"row_id": self.row_id} if self.row_id else {})


def numbered_suffixes(k: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(k))


def without_common_prefix(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns without the prefix, up to an underscore, that all of them have.

    >>> without_common_prefix(["p_ant", "p_bee"]), without_common_prefix(["ant", "bee"])
    (('ant', 'bee'), ('ant', 'bee'))
    """
    prefix = names[0].partition("_")[0] + "_" if names else ""
    has_prefix = len(prefix) > 1 and all(name.startswith(prefix) and name != prefix for name in names)
    return tuple(name.removeprefix(prefix) for name in names) if has_prefix else tuple(names)


Names = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class ColumnSelection:
    """Column names and patterns as specified by the caller of `read`."""

    label: str | None = "label"  # column of the true class
    probs: Names = "p_*"  # columns of probabilities
    logits: Names | bool | None = None  # columns of logits; True if `probs` names them
    confidence: str | None = None  # column of the confidence in the chosen answer
    correct: str | None = None  # column of its correctness
    predicted: str | None = None  # column of the predicted label, which is correct if it equals the label
    multilabel: Names | None = None  # columns of independent labels, 0 or 1
    votes: Names | None = None  # columns of the number of votes for each class
    weight: str | None = None  # column of the weights
    group: Names | None = None  # columns of subgroups
    cluster: str | None = None  # column of clusters of dependent rows
    row_id: str | None = None  # column that identifies the rows, whatever their order

    @property
    def has_logits(self) -> bool:
        return self.logits is not None and self.logits is not False

    @property
    def kind(self) -> str:
        """Kind of outcome: "classes" (labels), "confidence", "votes" or "multilabel"."""
        kinds = [name for name in ("confidence", "votes", "multilabel") if getattr(self, name) is not None]
        keywords = ["logits", *kinds] if self.has_logits and kinds == ["confidence"] else kinds
        if len(keywords) > 1:
            raise InputError(
                "TO205", "These columns exclude each other.", " and ".join(keywords), "Pass only one of them."
            )
        for name in ("correct", "predicted"):
            column = getattr(self, name)
            if column is not None and self.confidence is None:
                raise InputError(
                    "TO205", f"{name} needs a confidence.", f"⟨{name}={describe(column)}⟩", "Pass ⟨confidence=⟩."
                )
        if self.correct is not None and self.predicted is not None:
            got, fix = "correct and predicted", "Pass only one of them."
            raise InputError("TO205", "Both define which answer is correct.", got, fix)
        return kinds[0] if kinds else "classes"

    def resolve(self, table: ColumnSource) -> ColumnRoles:
        roles = self._find_roles(table)
        refuse_repeated_columns(table.name, table.columns, table.read_columns(roles.names))
        return roles

    def _find_roles(self, table: ColumnSource) -> ColumnRoles:
        kind, finder = self.kind, _ColumnFinder(table)
        group = (self.group,) if isinstance(self.group, str) else tuple(self.group or ())
        weight, cluster = finder.find_one(self.weight, "weight"), finder.find_one(self.cluster, "cluster")
        row_id = finder.find_one(self.row_id, "row_id")
        for name in group:
            finder.check_group(name)
        if kind == "confidence":
            correct, predicted = finder.find_one(self.correct, "correct"), finder.find_one(self.predicted, "predicted")
            truth: tuple[str, ...] = () if correct is None else (correct,)
            if predicted is not None:
                label = finder.find_label(self.label, self.probs)
                if label is None:
                    got = f"{argument('predicted', predicted)} and ⟨label=None⟩"
                    fix = "Pass ⟨label=⟩, the column of the true class."
                    raise InputError("TO205", "predicted needs a label to be compared with.", got, fix)
                truth = (label, predicted)
            confidence = finder.find_one(self.confidence, "confidence")
            assert confidence is not None
            fix = "Name the column of the confidence, and that of the correctness or those of both classes."
            _refuse_shared_columns((confidence, *truth), fix)
            return ColumnRoles(
                kind, (confidence,), None, truth, weight=weight, group=group, cluster=cluster, row_id=row_id
            )
        # Columns that are read as something else, which a pattern of probabilities does not match.
        role_of_column = {
            name: role for name, role in ((weight, "weight"), (cluster, "cluster"), (row_id, "row_id")) if name
        }
        role_of_column |= dict.fromkeys(group, "group")
        requested, keyword = self.probs, "probs"
        if isinstance(self.logits, (str, Sequence)):
            requested, keyword = self.logits, "logits"
        class_of_outcome: dict[str, str] | None = None
        if kind in ("votes", "multilabel"):
            outcomes = self.votes if self.votes is not None else self.multilabel
            assert outcomes is not None
            truth, class_of_outcome = finder.find_several(outcomes, kind, role_of_column)
            role_of_column |= dict.fromkeys(truth, kind)
            if self.label is not None and self.label in table.columns:
                role_of_column.setdefault(self.label, "label")  # not read here, but not a probability either
        else:
            label = finder.find_label(self.label, requested)
            truth = () if label is None else (label,)
            role_of_column |= dict.fromkeys(truth, "label")
        logit_array = finder.find_logit_array(requested, truth, role_of_column) if self.logits is True else None
        if logit_array is not None:
            requested, keyword = logit_array, "logits"
        probs, class_of_column = finder.find_several(requested, keyword, role_of_column)
        fix = f"Name the column of the outcome, and as {keyword} those of the predictions."
        _refuse_shared_columns((*probs, *truth), fix)
        suffixes = tuple(class_of_column.values()) if class_of_column else None
        if kind in ("votes", "multilabel") and len(probs) > 1:
            truth = align_outcomes(truth, class_of_outcome, probs, suffixes, kind, table.name)
        classes = None if suffixes is None else classes_for_numeric_labels(without_common_prefix(suffixes))
        if kind == "classes" and classes is not None and class_numbers(classes) is not None:
            finder.notes.append(numbered_columns_note(f"The columns {keyword}", classes))
        return ColumnRoles(
            kind, probs, suffixes, truth, weight=weight, group=group, cluster=cluster, row_id=row_id,
            logits=self.has_logits, rows_name_classes=finder.rows_name_classes, notes=tuple(finder.notes),
        )  # fmt: skip


class _ColumnFinder:
    """The columns of one table, looked up by name or pattern."""

    def __init__(self, table: ColumnSource) -> None:
        self.table = table
        self.column_names = frozenset([*table.columns, *table.constants])
        self.notes: list[Note] = []
        self.rows_name_classes = False  # whether a list of classes with scores was found
        self._first_cells: dict[str, Any] = {}  # by column

    def _suggest_separator(self) -> str | None:
        return suggest_separator(self.table.columns) if self.table.format == "csv" else None

    def find_one(self, name: str | None, keyword: str) -> str | None:
        """Return the column or field for the `keyword` of `read`; raise TO304 if the table does not have it."""
        if name is not None and name not in self.column_names and self._find_cell(name) is NO_FIELD:
            raise InputError(
                "TO304",
                f"{self.table.name} has no such column.",
                argument(keyword, name),
                self._suggest_separator()
                or self._suggest_fields(name, keyword)
                or suggest_similar_columns(name, (*self.table.columns, *self.table.partition)),
            )
        return name

    def _find_cell(self, name: str) -> Any:
        column, path = split_path(name, self.column_names)
        if column not in self.table.columns:
            return NO_FIELD if path else self.table.constants.get(column, NO_FIELD)
        if column not in self._first_cells:
            self._first_cells[column] = vector_values(self.table.first_cell(column))
        first_cell = self._first_cells[column]
        if path and first_cell is None:  # the cells of a text file, for example, have no fields
            return NO_FIELD
        return find_field(first_cell, path) if path else first_cell

    def _suggest_fields(self, name: str, keyword: str) -> str | None:
        parent, _ = split_path(name, self.column_names)
        fields = fields_of_cell(self._find_cell(parent))
        if parent == name or not fields:
            return None
        paths = [f"{parent}.{field}" for field in fields]
        listed = escape_marks(f"{parent} are {', '.join(fields)}")
        return did_you_mean(name, map(escape_marks, paths)) or f"The fields of {listed}: {argument(keyword, paths[0])}."

    def find_label(self, name: str | None, probs: Names) -> str | None:
        """Return the column of the label, under its usual names; `probs` are the columns requested as probabilities."""
        if (
            name == "label"
            and self.table.has_keys
            and "label" not in self.column_names
            and "labels" in self.column_names
        ):
            return "labels"
        if (
            name == "label"
            and name not in self.column_names
            and (suggestion := self._suggest_separator() or suggest_outcome_columns(self.table.columns, probs))
        ):
            raise InputError("TO304", f"{self.table.name} has no such column.", "⟨label='label'⟩", suggestion)
        return self.find_one(name, "label")

    def check_group(self, name: str) -> None:
        """Raise TO304 unless the table has the group column; several names in one text are reported as such."""
        parts = [part.strip() for part in name.split(",")]
        if name not in self.column_names and len(parts) > 1 and all(part in self.column_names for part in parts):
            got, fix = argument("group", name), f"Name each by itself: {argument('group', parts)}."
            raise InputError("TO304", f"{self.table.name} has no such column.", got, fix)
        self.find_one(name, "group")

    def find_several(
        self, requested: Names, keyword: str, role_of_column: dict[str, str]
    ) -> tuple[tuple[str, ...], dict[str, str] | None]:
        """Return the columns that are listed or match a pattern, and the class name of each if there are several.

        The class name is the text that the wildcard matches, or the name of a listed column. `keyword` is the keyword
        of `read` that requests the columns, for errors. A pattern does not match the columns in `role_of_column`, which
        are read as something else.
        """
        if not isinstance(requested, str):
            if len(requested) == 0:
                raise InputError("TO304", f"{keyword} names no column.", "an empty list", "Name one column per class.")
            for name in requested:
                self.find_one(name, keyword)
            if len(set(requested)) < len(requested):
                fix = "Name each column once; if the file has several columns of this name, rename them in it."
                raise InputError("TO313", f"{keyword} contains a column twice.", repr(list(requested)), fix)
            if len(requested) == 1:
                return tuple(requested), None
            are_fields = not self.column_names.intersection(requested)
            return tuple(requested), {name: name.rpartition(".")[2] if are_fields else name for name in requested}
        if requested in self.column_names or "*" not in requested:
            self.find_one(requested, keyword)
            return self._find_classes(requested, keyword) or ((requested,), None)
        pattern = re.compile("(.*)".join(re.escape(piece) for piece in requested.split("*")), re.DOTALL)
        matches = {name: match for name in self.table.columns if (match := pattern.fullmatch(name))}
        if not matches and "." in requested.partition("*")[0]:
            parent = requested.partition("*")[0].rpartition(".")[0]
            paths = [f"{parent}.{field}" for field in self._class_fields(parent)]
            matches = {name: match for name in paths if (match := pattern.fullmatch(name))}
        for name in [name for name in matches if name in role_of_column]:
            del matches[name]
            self.notes.append(
                Note(
                    "TN301",
                    f"{keyword} {requested!r} also matches {name!r}, which is read as the {role_of_column[name]} only.",
                )
            )
        texts = [name for name in matches if self._holds_text(name)]
        if texts and len(matches) - len(texts) > 1:
            for name in texts:
                del matches[name]
            text = f"{keyword} {requested!r} also matches the text in {', '.join(texts)}, which was not read."
            self.notes.append(Note("TN314", text))
        if not matches and self.table.has_keys and requested == "p_*" and "probs" in self.column_names:
            return ("probs",), None
        if not matches:
            raise InputError(
                "TO305",
                f"No column of {self.table.name} matches {requested!r}.",
                argument(keyword, requested),
                self._suggest_separator()
                or suggest_alike_matches(pattern, self.table.columns)
                or suggest_numbered_columns(keyword, self.table.columns)
                or f"{suggest_similar_columns(requested.replace('*', ''), self.table.columns)} Only * is a wildcard.",
            )
        class_of_column = {name: "".join(match.groups()) for name, match in matches.items()}
        return tuple(matches), class_of_column if len(matches) > 1 else None

    def _holds_text(self, name: str) -> bool:
        """Return whether a column is known to hold text, or a field holds text in the first cell."""
        if name in self.column_names:
            return name in self.table.text_columns and self.table.columns.count(name) == 1
        return isinstance(self._find_cell(name), str)

    def _class_fields(self, name: str) -> list[str]:
        """Return the fields of the cells of a column or field; those of a list of classes with scores are its classes.

        These are sorted, because each row may have an order of its own.
        """
        cell = self._find_cell(name)
        if (scores := scores_by_class(cell)) is not None:
            self.rows_name_classes = True
            return sort_classes(scores)
        return fields_of_cell(cell)

    def _find_classes(self, name: str, keyword: str) -> tuple[tuple[str, ...], dict[str, str] | None] | None:
        """Return the fields that hold the classes of a column whose cells have fields, and the class of each.

        None if the cells are numbers, or lists of numbers without names. If the cells are a list of scores beside a
        list of the classes, `prediction.scores` beside `prediction.classes`, these name the classes.
        """
        parent, cell = name, self._find_cell(name)
        if isinstance(to_python(cell), list) and scores_by_class(cell) is None and "." in name:
            parent = name.rpartition(".")[0]
            beside = self._find_cell(parent)
            keys = list_keys(beside) if isinstance(beside, Mapping) else None
            if keys is None or f"{parent}.{keys[1]}" != name or scores_by_class(beside) is None:
                return None
        elif not isinstance(cell, Mapping) and scores_by_class(cell) is None:
            return None
        fields = self._class_fields(parent)
        class_of_column = {f"{parent}.{field}": field for field in fields}
        if self.column_names.intersection(class_of_column):
            columns = [column for column in class_of_column if column in self.column_names]
            fix = f"Pass {argument(keyword, f'{parent}.*')} for these columns, or rename them."
            problem = f"{self.table.name} has the column {parent!r} with fields, and columns with their names."
            raise InputError("TO313", problem, ", ".join(columns), fix)
        cell_of_field = {field: to_python(self._find_cell(f"{parent}.{field}")) for field in fields}
        numbers = [field for field, value in cell_of_field.items() if isinstance(value, NUMBERS)]
        if len(numbers) < len(fields):
            # Lists and objects first: a number beside them is something else, such as a version.
            nested = [field for field, value in cell_of_field.items() if isinstance(value, (list, Mapping))]
            field = (nested or ("*" if len(numbers) > 1 else numbers) or ["FIELD"])[0]
            problem = f"Column {name!r} of {self.table.name} has fields that are not numbers."
            fields_hint = "fields of the probabilities, without text" if field == "*" else "field of the probabilities"
            fix = f"Name the {fields_hint}: {argument(keyword, f'{name}.{field}')}."
            raise InputError("TO307", problem, ", ".join(fields), fix)
        return tuple(class_of_column), class_of_column if len(class_of_column) > 1 else None

    def find_logit_array(
        self, requested: Names, truth: tuple[str, ...], role_of_column: Mapping[str, str]
    ) -> str | None:
        """Return the array of logits of a table of arrays, if none is named: `logits`, else the only one that fits.

        It has floats, as many rows as the outcomes `truth`, and no other role. Raises TO414 if several fit. None if
        the columns are requested by name, if none fits, or if several arrays (n,) fit, which may be a column each.
        """
        if not self.table.has_keys or requested != "p_*" or any(name.startswith("p_") for name in self.table.columns):
            return None
        shapes = self.table.float_arrays()
        n = self.table.n_rows_of(truth[0]) if truth else None
        fitting = [
            name for name, shape in shapes.items() if name not in role_of_column and (n is None or shape[0] == n)
        ]
        if "logits" in fitting or len(fitting) == 1:
            return "logits" if "logits" in fitting else fitting[0]
        if all(len(shapes[name]) == 1 for name in fitting):
            return None
        got = ", ".join(f"{name} {shapes[name]}" for name in fitting)
        fix = f"Name one of them, for instance {argument('logits', fitting[0])}."
        raise InputError("TO414", f"Several arrays of {self.table.name} can be the logits.", got, fix)


def _refuse_shared_columns(names: Sequence[str], fix: str) -> None:
    """Raise TO313 if a column is read as the prediction and as the outcome, which would then always agree."""
    if len(set(names)) < len(names):
        raise InputError("TO313", "The same column was named twice.", ", ".join(names), fix)


def align_outcomes(
    truth: tuple[str, ...],
    class_of_outcome: dict[str, str] | None,
    probs: tuple[str, ...],
    suffixes: tuple[str, ...] | None,
    kind: str,
    table_name: str,
) -> tuple[str, ...]:
    """Return the outcome columns in the order of the probability columns: v_dog belongs to p_dog.

    `class_of_outcome` maps outcome columns to class names, and `suffixes` are the class names of the columns `probs`;
    None if the columns do not name classes. `kind` is "votes" or "multilabel".
    """
    if len(truth) == 1:  # a column of lists, whose order is unknown
        return truth
    if len(truth) != len(probs):
        raise InputError(
            "TO313",
            f"{kind} and probs of {table_name} must have equally many columns.",
            f"{len(truth)} and {len(probs)}{_describe_unmatched(class_of_outcome, suffixes, truth, probs)}",
            "Name one column of outcomes per column of probabilities.",
        )
    column_of_class = {name: column for column, name in (class_of_outcome or {}).items()}
    if suffixes is None or set(column_of_class) == set(truth) or set(suffixes) == set(probs):
        return truth  # the columns are listed by name, in the order of the classes
    if set(column_of_class) == set(suffixes):
        return tuple(column_of_class[suffix] for suffix in suffixes)
    if tuple(column_of_class) == numbered_suffixes(len(truth)):
        return truth
    probability_classes = frozenset(suffixes)
    unmatched = next(name for name in column_of_class if name not in probability_classes)
    raise InputError(
        "TO313",
        f"The columns of {kind} and probs of {table_name} must name the same classes.",
        f"{column_of_class[unmatched]!r} without a matching probability column",
        "Rename the columns, or list both in one order.",
    )


def _describe_unmatched(
    class_of_outcome: dict[str, str] | None,
    suffixes: tuple[str, ...] | None,
    truth: tuple[str, ...],
    probs: tuple[str, ...],
) -> str:
    """Describe the first outcome or probability column without a matching one, such as ": v_dog is missing".

    Empty if the name of the missing column cannot be inferred. The arguments are those of `align_outcomes`.
    """
    class_of_prob = dict(zip(probs, suffixes, strict=True)) if suffixes else {}
    outcomes = class_of_outcome or {}
    for classes, columns, other_classes in ((class_of_prob, probs, outcomes), (outcomes, truth, class_of_prob)):
        paired_classes = {None, *other_classes.values()}
        unpaired = next((column for column in columns if classes.get(column) not in paired_classes), None)
        # A column of the other kind and the class in its name, such as p_dog and dog, shows how columns are named.
        named_columns = ((column, name) for column, name in other_classes.items() if column != name)
        example = next((pair for pair in named_columns if pair[0].count(pair[1]) == 1), None)
        if unpaired is not None and unpaired != classes[unpaired] and example is not None:
            example_column, example_class = example
            missing = example_column.replace(example_class, classes[unpaired])
            return f": {missing} is missing (there is {unpaired})"
    return ""
