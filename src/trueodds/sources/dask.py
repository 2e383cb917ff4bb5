"""How are rows summed up that Dask holds: dataframes, bags of records, or files that its workers read?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import dask

from trueodds.core.errors import InputError
from trueodds.sources import files
from trueodds.sources.parted import FAN, Opened, Part, PartedSource, Reading, framed, opened_file, together
from trueodds.sources.source import Progress
from trueodds.sources.table import Table


class DaskSource(PartedSource):
    """The partitions of a Dask dataframe or of a bag of records, or files, one to a partition.

    Whatever scheduler is active runs them: the client of `dask.distributed`, else this machine's threads.
    """

    def __init__(self, data: Any, reading: Reading) -> None:
        if isinstance(data, list):
            opens: list[Any] = [partial(opened_file, path) for path in data]
            head = files.opened(data[0])[0]
        else:
            delayed = data.to_delayed()
            if not delayed:
                raise InputError("TO312", "The Dask collection is empty.", "no partition", "Give at least one row.")
            kind = "bag" if hasattr(data, "to_dataframe") else "dataframe"
            names = [f"partition {number} of the dask {kind}" for number in range(len(delayed))]
            opens = [dask.delayed(partial)(framed, part, name) for part, name in zip(delayed, names, strict=True)]
            head = framed(_first(data, kind), f"the dask {kind}")[0]
        self._opens = opens
        super().__init__(head, reading, data if isinstance(data, list) else ())

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._opens)

    def run(self, work: Callable[[int, Opened], Part], progress: Progress | None) -> Part:
        """The sums are added up by the workers, some at a time, and one comes back."""
        leaves = level = [dask.delayed(work, pure=False)(number, opened) for number, opened in enumerate(self._opens)]
        while len(level) > 1:
            level = [dask.delayed(together, pure=False)(level[i : i + FAN]) for i in range(0, len(level), FAN)]
        client = _client()
        if client is None:
            (found,) = dask.compute(level[0])
            return found
        future, *counts = client.compute([level[0], *(dask.delayed(attrgetter("rows"))(leaf) for leaf in leaves)])
        if progress is not None:
            _told(counts, progress)
        return future.result()

    def gathered(self) -> Iterator[Table]:
        """One partition after the other is brought here."""
        for opened in self._opens:
            (found,) = dask.compute(opened)
            yield from found()


def _client() -> Any:
    """The client of the cluster that is active, if there is one."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _told(counts: Sequence[Any], progress: Progress) -> None:
    """Rows done, as partitions are finished."""
    from distributed import as_completed

    done = 0
    for future in as_completed(counts):
        if future.status != "finished":
            return
        done += future.result()
        progress(done, None)


def _first(data: Any, kind: str) -> Any:
    """The columns of a dataframe, without reading it; of a bag its first record."""
    if kind == "dataframe":
        return data.head(1, npartitions=-1, compute=False).compute(scheduler="sync")
    return list(data.take(1, npartitions=-1, warn=False, compute=False).compute(scheduler="sync"))


def opened(data: Any, reading: Reading) -> DaskSource:
    """The source of a collection, or of a list of files."""
    return DaskSource(data, reading)
