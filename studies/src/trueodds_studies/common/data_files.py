"""Find, hash and read the npz and parquet files of the studies; missing and broken files are an InputError."""

from __future__ import annotations

import hashlib
import importlib
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.io.files import require_pyarrow

SOURCES = {
    "adult_features.parquet": "UCI Adult (archive.ics.uci.edu, CC BY 4.0)",
    "adult_rf_predictions.parquet": "github.com/zygmuntz/classifier-calibration, adult/y_and_p.csv",
    "aigen_cifar100_resnet110.npz": "github.com/AIgen/df-posthoc-calibration, data/cifar100_resnet110",
    "aigen_cifar10_resnet50.npz": "github.com/AIgen/df-posthoc-calibration, data/cifar10_resnet50",
    "aigen_focal_cifar10_wide_resnet.npz": "github.com/AIgen/df-posthoc-calibration, data/focal_cifar10_wide_resnet",
    "cifar10h.npz": "github.com/jcpeterson/cifar-10h",
    "chaosnli_snli.npz": "github.com/jsbaan/calibration-on-disagreement-data",
    "ecology_tree_species.parquet": "the R package PresenceAbsence, data/SPDATA",
    "brcal_hockey.parquet": "the R package BRcal, data/hockey",
    "ferrer_adrenalmnist_resnet50.npz": "github.com/luferrer/expected_cost, notebooks/data/adrenalmnist_resnet50",
    "ferrer_agnews_gpt2.npz": "github.com/luferrer/expected_cost, notebooks/data/agnews_gpt2",
    "ferrer_pathmnist_resnet50.npz": "github.com/luferrer/expected_cost, notebooks/data/pathmnist_resnet50",
    "fte_soccer.parquet": "github.com/fivethirtyeight/checking-our-work-data, CC BY 4.0",
    "mnist.npz": "MNIST (LeCun, Cortes and Burges, CC BY-SA 3.0): the idx files as arrays of unsigned bytes",
    "obesity_features.parquet": "UCI Estimation of Obesity Levels (archive.ics.uci.edu, CC BY 4.0)",
    "plambda_cifar10_vgg16.npz": "github.com/p-lambda/verified_calibration, data/cifar_probs.dat",
    "psr_emotion_final.npz": "github.com/luferrer/psr-calibration, data/emotion_final",
    "tcal_imagenet_top1.npz": "github.com/dh7401/T-Cal",
    "widmann_cifar10_4nets.npz": "github.com/devmotion/CalibrationPaper",
}
"""Where each file comes from, for the message if it is missing."""


def find_file(name: str, data: str | Path | None) -> Path:
    """Find a file in the folder `data`, by default `$TRUEODDS_REFERENCE/data` or else `../shared/data`.

    Raises TO802 with the source of the file if it does not exist.
    """
    folder = Path(data) if data is not None else Path(os.environ.get("TRUEODDS_REFERENCE", "../shared")) / "data"
    path = folder / name
    if not path.is_file():
        raise InputError(
            "TO802",
            "A file that the study needs is missing.",
            f"no {name} in {str(folder)!r}",
            f"{_describe_source(name)} Name its folder with --data.",
        )
    return path


def hash_file(name: str, data: str | Path | None) -> str:
    """The SHA-256 of a file in hexadecimal; saved results are reused only for a file with the same hash."""
    path = find_file(name, data)
    with _convert_read_errors(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def load_npz(name: str, data: str | Path | None, *names: str) -> dict[str, Any]:
    """Arrays of an npz file by name: those in `names`, or all of them.

    Raises TO803 if an array is missing or the file cannot be read.
    """
    path = find_file(name, data)
    with _convert_read_errors(path), path.open("rb") as raw:  # opened here, as NumPy leaves a broken file open
        file = np.load(raw, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name")
        _check_names(path, names, file.files)
        return {key: file[key] for key in names or file.files}


def load_parquet(name: str, data: str | Path | None, *names: str) -> dict[str, Any]:
    """Columns of a parquet file as NumPy arrays by name: those in `names`, or all of them.

    Raises TO803 if a column is missing or the file cannot be read.
    """
    path = find_file(name, data)
    require_pyarrow(name)
    parquet = importlib.import_module("pyarrow.parquet")
    with _convert_read_errors(path):
        _check_names(path, names, parquet.read_schema(path).names)
        table = parquet.read_table(path, columns=list(names) or None)
        return {key: table[key].to_numpy() for key in names or table.column_names}


def _check_names(path: Path, names: Sequence[str], available: Collection[str]) -> None:
    """Raise TO803 if a name is not among the arrays or columns of the file."""
    missing = [name for name in names if name not in available]
    if missing:
        raise InputError(
            "TO803",
            "A file that the study needs is incomplete.",
            f"no {', '.join(missing)} in {path.name}, which holds {', '.join(available) or 'nothing'}",
            _describe_source(path.name),
        )


@contextmanager
def _convert_read_errors(path: Path) -> Iterator[None]:
    """Convert the errors that NumPy and pyarrow raise for a broken file or another format to TO803."""
    try:
        yield
    except InputError:
        raise
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as problem:
        raise InputError(
            "TO803",
            "A file that the study needs cannot be read.",
            f"{path}: {str(problem).splitlines()[0] if str(problem) else type(problem).__name__}",
            _describe_source(path.name),
        ) from None


def _describe_source(name: str) -> str:
    """The hint of an error message: the source of a file, or its format if the source is not listed."""
    source = f"is made from {SOURCES[name]}" if name in SOURCES else f"is a {Path(name).suffix[1:]} file"
    return f"It {source}; docs/studies.md says what it holds."
