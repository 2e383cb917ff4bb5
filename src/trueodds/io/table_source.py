"""A source over tables: their rows as Predictions, in bounded batches or all at once.

The rows of a batch take three forms: the columns of a table (`ColumnBatch`), their arrays by role (`Block`, not yet
validated), and `Predictions`.
"""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, Note, argument
from trueodds.core.printable import escape_marks
from trueodds.core.typing import Array
from trueodds.data.class_names import (
    categories_notes,
    class_numbers,
    classes_for_numeric_labels,
    looks_like_a_number,
    names_of_labels,
)
from trueodds.data.predictions import Predictions
from trueodds.io.blocks import Block, ColumnConsistency, join_blocks, make_block, row_ids
from trueodds.io.column_suggestions import suggest_predicted_column
from trueodds.io.columns import ColumnRoles, ColumnSelection, numbered_suffixes, without_common_prefix
from trueodds.io.conversion import Place, infer_filled_kind
from trueodds.io.csv_format import DETECTED, CsvSettings
from trueodds.io.files import copy_notes
from trueodds.io.source import RowProgress, Source
from trueodds.io.table import ROWS_PER_BATCH, ColumnBatch, ColumnSource

MAX_BATCH_PROBABILITIES = 1 << 22  # maximum number of rows times classes of a batch, to bound its memory
MAX_LISTED_COLUMNS = 12  # number of columns of probabilities that an error lists
MAX_ORDERS_LENGTH = 110  # characters of two orders of columns that an error writes out
_MISSING_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # folder of the rows without a value
MIN_BATCH_ROWS = 1024  # with however many classes, so that the fixed cost of a batch does not dominate

_ABSTENTION_REMEDY = (
    "If rows without an answer exist, ⟨read them by to.read_answers(…, abstained=…)⟩; that may be the column of "
    "the confidence itself."
)


class TableHeader(NamedTuple):
    """The name of a table, and its columns that are read."""

    name: str
    roles: ColumnRoles


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How the rows of tables are read; also sent to the workers that read partitions."""

    selection: ColumnSelection  # the columns, as the caller names them
    classes: Sequence[Any] | None = None
    sum_tolerance: float | None = None
    batch_rows: int = ROWS_PER_BATCH
    missing: float | None = None  # value of an unknown label of a multilabel problem
    csv_settings: CsvSettings = DETECTED
    unlabeled: bool = False  # whether rows without a label are read
    first_table: TableHeader | None = None  # that of the first table, whose columns all others must have

    def make_source(self, tables: Sequence[ColumnSource]) -> TableSource:
        """Return the source of these tables, which are read together."""
        table_source = TableSource(tables, self)
        if self.first_table is not None:
            table_source.use_columns_of(self.first_table.name, self.first_table.roles)
        return table_source.with_unlabeled() if self.unlabeled else table_source


class TableSource(Source):
    """A source of the rows of one table, or of several tables with the same columns."""

    roles: ColumnRoles

    def __init__(self, tables: Sequence[ColumnSource], reading: ReadingSettings) -> None:
        first_table, selection = tables[0], reading.selection
        self.tables, self.format = tuple(tables), first_table.format
        self.files = [table.name for table in tables]
        self.roles = selection.resolve(first_table)
        # If the tables have their columns of probabilities in different orders: two tables with their orders.
        self._orders: tuple[tuple[str, tuple[str, ...]], ...] | None = None
        for table in self.tables[1:]:
            roles = selection.resolve(table)
            check_same_columns(first_table.name, self.roles.names, table.name, roles.names)
            self._note_order(first_table.name, self.roles, table.name, roles)
        self.name = first_table.name if len(tables) == 1 else f"{first_table.name} and {len(tables) - 1:,} more"
        counts = [table.rows for table in tables if table.rows is not None]
        self.rows = sum(counts) if len(counts) == len(tables) else None
        if self.rows == 0:
            raise self._empty_error()
        self.notes = (*self.roles.notes, *notes_on_reading(self.tables, self.roles))
        self._reading, self.sum_tolerance = reading, reading.sum_tolerance
        self._unlabeled = False  # whether rows without a label are read
        if self.roles.kind == "multilabel":
            for table in self.tables:
                table.columns_with_missing = frozenset(self.roles.truth)
        self._cached_n_classes: int | None = None
        self._names_of_labels: tuple[str, ...] | None = None  # of the classes, from the first labels that are text
        self._categories = self._categories_in_column_order()
        self.notes += tuple(categories_notes(self._categories or ()))

    def _categories_in_column_order(self) -> list[Any] | None:
        """Return the categories of the label if there is one per column, and neither `classes` nor numbers in names."""
        suffixes = self.roles.suffixes
        if self.roles.kind != "classes" or not self.roles.truth or self._reading.classes is not None:
            return None
        if suffixes is not None and class_numbers(without_common_prefix(suffixes)) is not None:
            return None
        if self.roles.rows_name_classes:  # the classes of the rows have no order
            return None
        categories = self.tables[0].categories(self.roles.truth[0])
        if categories is None or len(categories) != self._n_classes:
            return None
        is_text = all(isinstance(name, str) for name in categories)
        return None if is_text and suffixes is not None else categories  # names of columns are matched by name

    def with_unlabeled(self) -> TableSource:
        new = copy.copy(self)
        if self.roles.kind in ("classes", "confidence"):
            new.tables, new._unlabeled = tuple(map(copy.copy, self.tables)), True
            for table in new.tables:
                table.label_columns = frozenset(self.roles.truth[:1])
        return new

    def with_time_column(self, name: str) -> TableSource:
        new = copy.copy(self)
        new.tables = tuple(map(copy.copy, self.tables))
        for table in new.tables:
            table.time_columns = frozenset([name])
        return new

    def use_columns_of(self, first_name: str, first_roles: ColumnRoles) -> None:
        """Read the columns as in the first table of a partitioned source; raise TO309 for other columns."""
        check_same_columns(first_name, first_roles.names, self.name, self.roles.names)
        self._note_order(first_name, first_roles, self.name, self.roles)
        self.roles = first_roles

    def _note_order(self, first_name: str, first_roles: ColumnRoles, name: str, roles: ColumnRoles) -> None:
        if roles.probs != first_roles.probs and self._orders is None:
            self._orders = ((first_name, first_roles.probs), (name, roles.probs))

    def batches(self) -> Iterator[Predictions]:
        yield from self.batches_after(0)

    def batches_after(self, skip_rows: int) -> Iterator[Predictions]:
        """Yield the batches after the first `skip_rows` rows, as in `blocks`; files that end before are not read."""
        for block in self._merge_weightless_blocks(skip_rows):
            yield self.validate_block(block, is_part=True, copy=self._shares_memory)

    def batches_with_ids(self, first_table_number: int = 0) -> Iterator[tuple[Predictions, Array]]:
        """Yield each batch with the ids of its rows, (n,) uint64: from the id column, else from the position.

        `first_table_number` is added to the numbers of the tables, which are part of ids from positions. A partition
        passes its own number, so that the ids of all partitions differ.
        """
        for block in self._merge_weightless_blocks():
            preds = self.validate_block(block, is_part=True, copy=self._shares_memory)
            yield preds, row_ids(block, first_table_number)

    def file_stamps(self) -> list[list[Any]]:
        """Return name, size and modification time of each file, by which a resumed tally recognizes the files."""
        return [_file_stamp(table.name) for table in self.tables]

    def reading_settings(self) -> dict[str, Any]:
        """Return the settings of reading and batching: a tally can be resumed only with the same settings."""
        classes = None if self._reading.classes is None else [str(name) for name in self._reading.classes]
        return {
            "columns": self.roles.describe(),
            "classes": classes,
            "sum_tolerance": self.sum_tolerance,
            "batch_rows": self.max_batch_rows,
        } | ({} if self._reading.missing is None else {"missing": self._reading.missing})

    def _collect(self, limit: int | None, progress: RowProgress | None) -> Predictions | None:
        blocks: list[Block] = []
        rows_read = 0
        for block in self.blocks():
            blocks.append(block)
            rows_read += block.n
            if progress is not None:
                progress(rows_read, self.rows)
            if limit is not None and rows_read * (block.p.shape[1] if block.p.ndim == 2 else 2) > limit:
                return None
        # Joined blocks are new arrays; a single one may be a view of the caller's frame.
        copy = len(blocks) == 1 and self._shares_memory
        preds = self.validate_block(join_blocks(blocks), is_part=False, copy=copy)
        return preds.with_notes(*self.notes, *copy_notes([table.name for table in self.tables]))

    @property
    def n_probabilities(self) -> int | None:
        return None if self.rows is None else self.rows * self._n_classes

    @property
    def max_batch_rows(self) -> int:
        if self.rows is None and len(self.roles.probs) == 1:
            return self._reading.batch_rows  # the length of the lists is unknown before reading
        return min(self._reading.batch_rows, max(MIN_BATCH_ROWS, MAX_BATCH_PROBABILITIES // self._n_classes))

    @property
    def _shares_memory(self) -> bool:
        """Whether a block may be a view of the caller's arrays, which can change after it was read."""
        return any(table.shares_memory for table in self.tables)

    @property
    def _n_classes(self) -> int:
        if len(self.roles.probs) > 1:
            return len(self.roles.probs)
        if self._cached_n_classes is None:
            table = next((table for table in self.tables if table.rows != 0), self.tables[0])
            self._cached_n_classes = table.n_classes(self.roles.probs[0])
        return self._cached_n_classes

    def blocks(self, skip_rows: int = 0) -> Iterator[Block]:
        """Yield the raw arrays of each batch before validation, without those of the skipped first rows.

        `skip_rows` must be the end of a batch, because a batch is skipped as a whole; TO331 is raised otherwise, and if
        there are fewer rows. Batches have the same ends in each pass with the same reading settings.
        """
        consistency = ColumnConsistency()
        is_empty, rows_to_skip = skip_rows == 0, skip_rows  # if rows are skipped, there need not be any others
        for table_number, table in enumerate(self.tables):
            next_row = 0
            if table.rows is not None and table.rows <= rows_to_skip:
                rows_to_skip -= table.rows
                continue
            for batch in self._read_batches(table):
                block = make_block(batch, self.roles, table.name, next_row, table_number)
                if block.n == 0:
                    continue
                consistency.check_unchanged(batch, self.roles, block)
                next_row, is_empty = next_row + block.n, False
                if rows_to_skip >= block.n:
                    rows_to_skip -= block.n
                    continue
                if rows_to_skip:
                    raise self._missing_rows_error(skip_rows)
                yield block
        if rows_to_skip:
            raise self._missing_rows_error(skip_rows)
        if is_empty:
            raise self._empty_error()

    def _read_batches(self, table: ColumnSource) -> Iterator[ColumnBatch]:
        """Yield the columns of each batch; the error of a missing confidence mentions abstentions."""
        in_file = [name for name in self.roles.names if name in table.columns or name not in table.constants]
        constant = [name for name in self.roles.names if name not in in_file]
        try:
            for batch in table.column_batches(in_file, self.roles.numeric, self.max_batch_rows):
                n = len(batch[self.roles.probs[0]])
                yield {**batch, **{name: self._constant_column(table, name, n) for name in constant}}
        except InputError as problem:
            if problem.code != "TO308" or self.roles.kind != "confidence":
                raise
            raise InputError(
                problem.code, problem.problem, problem.got, problem.fix + f" {_ABSTENTION_REMEDY}"
            ) from None

    def _constant_column(self, table: ColumnSource, name: str, n: int) -> Array:
        """Return the value of a column of one value for n rows: a number if it is one in every table."""
        if (value := table.constants[name]) == _MISSING_PARTITION:
            raise Place(table.name, name).missing_value_error(0, n)
        kind = infer_filled_kind([other.constants[name] for other in self.tables])
        return np.full(n, int(value) if kind == "int" else value)

    def _merge_weightless_blocks(self, skip_rows: int = 0) -> Iterator[Block]:
        """Yield the blocks; one whose weights are all 0, which `Predictions` refuses, is merged with a neighbor."""
        pending: Block | None = None
        for block in self.blocks(skip_rows):
            if pending is None:
                pending = block
            elif block.weight is not None and not (_has_weight(pending) and _has_weight(block)):
                pending = join_blocks([pending, block])
            else:
                yield pending
                pending = block
        if pending is not None:
            yield pending

    def validate_block(self, block: Block, *, is_part: bool, copy: bool = True) -> Predictions:
        """Return the rows of a block as Predictions, with their ids; an error names the file and its row.

        `is_part` says that other blocks are validated separately: an error then also names the range of these rows.
        """
        preds = self._validate_columns(block, is_part=is_part, copy=copy)
        return preds if block.row_id is None else preds.with_row_id(block.row_id)

    def _validate_columns(self, block: Block, *, is_part: bool, copy: bool) -> Predictions:
        if block.y is None and not self._unlabeled:
            raise self._no_outcome_error()
        y: Any = block.y
        extras: dict[str, Any] = {"weight": block.weight, "group": block.group or None, "cluster": block.cluster}
        extras["copy"] = copy
        kind = self.roles.kind
        classes = self.class_names(block)
        try:
            if kind == "confidence":
                preds = Predictions.from_confidence(block.p, y, **extras)
            elif kind == "multilabel":
                extras |= {"logits": self.roles.logits, "missing": self._reading.missing}
                preds = Predictions.from_multilabel(y, block.p, classes=classes, **extras)
            elif self.roles.logits:
                preds = Predictions.from_logits(y, block.p, classes=classes, **extras)
            else:
                preds = Predictions(y, block.p, classes=classes, sum_tolerance=self.sum_tolerance, **extras)
            if not self._unlabeled:
                preds.require_labels()
            return preds
        except InputError as problem:
            located = block.locate_error(problem, self.roles, is_part)
            if problem.code == "TO104" and len(self.roles.probs) > 1:
                fix = describe_columns(self.roles, self.tables[0].columns) + " " + located.fix
                located = InputError(located.code, located.problem, located.got, fix)
            if problem.code == "TO105" and self.roles.rows_name_classes:
                probs = argument(self.roles.probs_keyword, list(self.roles.probs))
                fix = located.fix + f" If the classes have other names, pass {probs} and ⟨classes=⟩ in this order."
                located = InputError(located.code, located.problem, located.got, fix)
            raise located from None

    def class_names(self, block: Block) -> Sequence[Any] | None:
        """Return the given names, else those of the columns; None if the columns are numbered 0..K−1."""
        suffixes = self.roles.suffixes
        if self._categories is not None:
            return self._categories
        if suffixes is None:
            return self._reading.classes
        if self._reading.classes is not None:
            if not refuse_other_order(self._reading.classes, self.roles):
                self._check_order_is_known()
            return self._reading.classes
        labels = block.present_labels
        if labels is not None and labels.dtype.kind == "U":
            if self._names_of_labels is None:
                self._names_of_labels = names_of_labels(suffixes, set(np.unique(labels).tolist()))
            return self._names_of_labels
        if labels is None or len(labels) == 0:  # no label can be a position
            names = without_common_prefix(suffixes)
            is_numbered = class_numbers(names) is not None
            return self._names_of_labels or classes_for_numeric_labels(names) or (None if is_numbered else names)
        if self.roles.kind in ("votes", "multilabel"):
            if not all(column.endswith(name) for column, name in zip(self.roles.truth, suffixes, strict=False)):
                self._check_order_is_known()
            return None if suffixes == numbered_suffixes(len(suffixes)) else suffixes
        names = without_common_prefix(suffixes)
        if (classes := classes_for_numeric_labels(names)) is not None:
            return classes  # p_1, p_10, p_2: a label refers to the column with this number
        has_boolean_labels = block.y is not None and block.y.dtype.kind == "b"
        are_booleans = has_boolean_labels and [name.lower() for name in names] == ["false", "true"]
        if class_numbers(names) is None and not are_booleans:
            self._check_order_is_known()
        # Label i refers to the i-th column. Its name is kept, so that tallies and calibrators know the order.
        return None if any(map(looks_like_a_number, names)) else names

    def _check_order_is_known(self) -> None:
        """Raise an error if outcomes refer to columns by position, but these have no order.

        TO357 if each row names its classes, TO309 if the tables have their columns in different orders.
        """
        if self.roles.rows_name_classes:
            raise InputError(
                "TO357",
                "Labels refer to classes by position, but each row names its classes, in an order of its own.",
                f"the classes {', '.join((self.roles.suffixes or ())[:MAX_LISTED_COLUMNS])}",
                f"Write these names as labels, or list the classes in the order of the labels:"
                f" {argument(self.roles.probs_keyword, list(self.roles.probs))}.",
            )
        if self._orders is None:
            return
        (first_name, first_probs), (name, probs) = self._orders
        keyword = self.roles.probs_keyword
        files = f"{os.path.basename(first_name)} and {os.path.basename(name)}"
        order_texts = [", ".join(first_probs), ", ".join(probs)]
        in_order = argument(keyword, list(first_probs))
        fix = f"Pass {in_order} if this is the order of the labels, or write names as labels."
        if sum(map(len, order_texts)) > MAX_ORDERS_LENGTH:
            i = next(i for i, (first, column) in enumerate(zip(first_probs, probs, strict=True)) if first != column)
            order_texts = [f"column {i} {first_probs[i]}", probs[i]]
            first = escape_marks(repr(first_probs[0]))
            fix = f"List the columns in the order of the labels, ⟨{keyword}=[{first}, …]⟩; or use names."
        raise InputError(
            "TO309",
            "Labels are numbers, which refer to columns by position, but the files have several orders of the columns.",
            f"{' and '.join(order_texts)} in {files}",
            fix,
        )

    def _missing_rows_error(self, skip_rows: int) -> InputError:
        problem = f"{self.name} does not have the rows that were tallied before."
        return InputError("TO331", problem, f"a count of {skip_rows:,} rows", "Remove the state to start again.")

    def _no_outcome_error(self) -> InputError:
        """Return the error of rows that are read without an outcome, with the columns that may hold it."""
        got, fix = "⟨label=None⟩", "Name the label's column."
        if self.roles.kind == "confidence":
            predicted = suggest_predicted_column(self.tables[0].columns) or "⟨label=⟩, ⟨predicted=⟩"
            got, fix = "⟨confidence=⟩ alone", f"Pass ⟨correct=⟩, or pass {predicted}."
        return InputError("TO304", f"No outcome is read from {self.name}.", got, fix)

    def _empty_error(self) -> InputError:
        return InputError("TO312", f"{self.name} is empty.", "0 rows", "Give at least one row.")


def notes_on_reading(tables: Sequence[ColumnSource], roles: ColumnRoles) -> list[Note]:
    """Return the notes on how tables are read; several tables that are read alike have one note."""
    names: dict[Note, list[str]] = {}  # names of tables by the note without the name
    for table in tables:
        for note in (*table.notes, *table.number_notes(roles.numeric)):
            names.setdefault(Note(note.code, note.text.replace(table.name, "{}")), []).append(table.name)
    notes = []
    for note, (first, *others) in names.items():
        more = f" (and {len(others):,} more {'file' if len(others) == 1 else 'files'})" if others else ""
        notes.append(Note(note.code, note.text.replace("{}", f"{first}{more}")))
    return notes


def _file_stamp(path: str) -> list[Any]:
    """Return what identifies the version of a file: path, size and time of the last change."""
    try:
        file_stat = os.stat(path)
    except OSError:  # a data frame in memory, which cannot be identified
        return [path]
    return [os.path.abspath(path), file_stat.st_size, file_stat.st_mtime_ns]


def _has_weight(block: Block) -> bool:
    return block.weight is not None and bool(block.weight.any())


def describe_columns(roles: ColumnRoles, columns: Sequence[str]) -> str:
    """Describe which columns of a table are read as probabilities, and which similar ones are not read.

    >>> roles = ColumnRoles("classes", ("p_ant", "p_bee"), None, ("label",))
    >>> describe_columns(roles, ["label", "p_ant", "p_bee", "p_bees"])
    'The columns read are p_ant, p_bee; the similar p_bees is not.'
    """
    shown = ", ".join(roles.probs[:MAX_LISTED_COLUMNS]) + (", …" if len(roles.probs) > MAX_LISTED_COLUMNS else "")
    similar = [
        name
        for name in columns
        if name not in roles.names and difflib.get_close_matches(name.lower(), [c.lower() for c in roles.probs])
    ]
    if not similar:
        return f"The columns read are {shown}."
    listed = ", ".join(similar[:MAX_LISTED_COLUMNS]) + (", …" if len(similar) > MAX_LISTED_COLUMNS else "")
    return f"The columns read are {shown}; the similar {listed} {'is' if len(similar) == 1 else 'are'} not."


def refuse_other_order(classes: Sequence[Any], roles: ColumnRoles) -> bool:
    """Return whether the columns have the names of the classes; raise TO113 if they have, but in another order."""
    suffixes = roles.suffixes or ()
    names = [str(name) for name in classes] if np.iterable(classes) and not isinstance(classes, str) else []
    candidates = {tuple(suffixes), without_common_prefix(suffixes)}
    if suffixes and names:
        candidates.add(names_of_labels(suffixes, names))
    for column_names in candidates:
        if sorted(names) == sorted(column_names):
            if names != list(column_names):
                ordered = [roles.probs[column_names.index(name)] for name in names]
                raise InputError(
                    "TO113",
                    "The classes have the names of the columns, but in another order.",
                    f"{', '.join(names)} for the columns {', '.join(roles.probs)}",
                    f"Leave classes out; if labels are numbers in the order of the classes, pass"
                    f" {argument(roles.probs_keyword, ordered)}.",
                )
            return True
    return False


def check_same_columns(
    first_name: str,
    first_columns: Sequence[str],
    other_name: str,
    other_columns: Sequence[str],
    *,
    is_output: bool = False,
) -> None:
    """Raise TO309 if another file, read with the first or written into one output, has other columns."""
    if unmatched := set(first_columns) ^ set(other_columns):
        use, fix = "read together", "Read them separately, or name the columns that both have."
        if is_output:
            use, fix = "written into one file", "Apply the calibrator to each file separately."
        problem = f"Files that are {use} must have the same columns, but those of {first_name} and {other_name} differ."
        raise InputError("TO309", problem, f"{min(unmatched)!r} in only one of them", fix)
