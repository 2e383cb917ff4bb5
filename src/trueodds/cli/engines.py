"""Who reads the files? This process, or the workers of Dask or Spark."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import click

from trueodds.core.errors import InputError
from trueodds.core.extras import install

ENGINES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--engine",
        {
            "metavar": "NAME",
            "type": click.Choice(["arrow", "dask", "spark"]),
            "help": "Who reads the files: arrow (this process), dask or spark.",
        },
    ),
    ("--scheduler", {"metavar": "ADDRESS", "help": "Of a Dask cluster, with --engine dask. [default: threads here]"}),
    ("--master", {"metavar": "URL", "help": "Of Spark, with --engine spark, such as local[4]."}),
    ("--row-id", {"metavar": "C", "help": "Column that no two rows share, so that samples do not hang on the files."}),
)
_PLACES = {"scheduler": "dask", "master": "spark"}


def ready(said: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, as `read` takes it, once the engine that it names is there; it goes when the command ends."""
    given = dict(said)
    for place, engine in _PLACES.items():
        if place in given and given.get("engine") != engine:
            raise InputError(
                "TO601",
                f"--{place} goes with --engine {engine}.",
                f"--{place} {given[place]}",
                f"Add --engine {engine}.",
            )
    address, master = given.pop("scheduler", None), given.pop("master", None)
    try:
        if address is not None:
            client = importlib.import_module("distributed").Client(address, timeout="10s")
            click.get_current_context().call_on_close(client.close)
        if given.get("engine") == "spark":
            _spark(master)
    except ModuleNotFoundError as problem:
        engine = given["engine"]
        what = f"The engine {engine} needs {problem.name}, which is not installed."
        raise InputError("TO306", what, "", install(engine)) from None
    except OSError as problem:
        raise InputError("TO332", "The Dask cluster does not answer.", f"{address}: {problem}", "Check it.") from None
    return given


def _spark(master: str | None) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # whoever installed trueodds here means this Python
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.appName("trueodds")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # nothing goes by it
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    click.get_current_context().call_on_close(session.stop)
