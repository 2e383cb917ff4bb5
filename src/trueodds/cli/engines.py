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


def ready(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, as `read` takes it, once the engine that it names is there; it goes when the command ends."""
    settings = dict(columns)
    for place, engine in _PLACES.items():
        if place in settings and settings.get("engine") != engine:
            raise InputError(
                "TO601",
                f"--{place} goes with --engine {engine}.",
                f"--{place} {settings[place]}",
                f"Add --engine {engine}.",
            )
    address, master = settings.pop("scheduler", None), settings.pop("master", None)
    try:
        if address is not None:
            client = importlib.import_module("distributed").Client(address, timeout="10s")
            click.get_current_context().call_on_close(client.close)
        if settings.get("engine") == "spark":
            _spark(master)
    except ModuleNotFoundError as problem:
        engine = settings["engine"]
        what = f"The engine {engine} needs {problem.name}, which is not installed."
        raise InputError("TO306", what, "", install(engine)) from None
    except OSError as problem:
        raise InputError("TO332", "The Dask cluster does not answer.", f"{address}: {problem}", "Check it.") from None
    return settings


def _spark(master: str | None) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # whoever installed trueodds here means this Python
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.appName("trueodds")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # nothing goes by it
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    click.get_current_context().call_on_close(session.stop)
