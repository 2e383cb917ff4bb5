"""Name the programs that compute a result: their versions, and the commit of trueodds where it runs from a clone."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import trueodds

# Distributions whose code computes results or reads files, and their names in prose.
_DISTRIBUTIONS = {
    "numpy": "NumPy",
    "scipy": "SciPy",
    "numba": "numba",
    "scikit-learn": "scikit-learn",
    "pyarrow": "pyarrow",
}
_PROGRAM_NAMES = {"trueodds": "trueodds", "commit": "commit", "python": "Python"} | _DISTRIBUTIONS


@cache
def _read_versions() -> Mapping[str, str]:
    versions = {"trueodds": trueodds.__version__}
    if (commit := commit_of_clone()) is not None:
        versions["commit"] = commit
    versions["python"] = platform.python_version()
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # pyarrow is optional
            continue
    return versions


def program_versions() -> dict[str, str]:
    """Return the versions of trueodds, Python and the packages that compute results, without importing these.

    The commit of the clone that trueodds runs from is among them, and so is pyarrow if it is installed.

    >>> list(program_versions())[0], "numba" in program_versions()
    ('trueodds', True)
    """
    return dict(_read_versions())


def version_rows(versions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the name of each program, as it is written in prose, and its version.

    >>> version_rows({"python": "3.13.1", "trueodds": "0.1.0"})
    [('Python', '3.13.1'), ('trueodds', '0.1.0')]
    """
    return [(_PROGRAM_NAMES.get(name, name), version) for name, version in versions.items()]


def commit_of_clone(package: Path | None = None) -> str | None:
    """Return the commit that is checked out in the clone of this package; None for an installed package.

    The files of git are read, without running it. Whether files were changed since is not examined. `package` is the
    folder of the package, by default that of trueodds.
    """
    root = (package or Path(trueodds.__file__).parent).resolve().parents[1]
    try:
        if "trueodds" not in (root / "pyproject.toml").read_text(encoding="utf-8"):
            return None
        folder = root / ".git"
        if folder.is_file():  # the clone is a further working tree of another one
            folder = root / folder.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        name = head.removeprefix("ref:").strip()
        return head if name == head else _read_reference(folder, name)
    except (OSError, UnicodeDecodeError):
        return None


def _read_reference(folder: Path, name: str) -> str | None:
    """Return the commit of a branch, which is a file of its own or a line of the file of packed references."""
    common = folder / "commondir"  # of a further working tree
    if common.is_file():
        folder = folder / common.read_text(encoding="utf-8").strip()
    if (folder / name).is_file():
        return (folder / name).read_text(encoding="utf-8").strip()
    for line in (folder / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, reference = line.partition(" ")
        if reference == name:
            return commit
    return None
