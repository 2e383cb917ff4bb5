"""Check the installed files, the packages, and what the processor and its libraries do."""

from __future__ import annotations

import base64
import math
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

import trueodds
from trueodds.core.versions import program_versions, version_rows
from trueodds.selftest.outcomes import FAILED, NOT_CHECKED, PASSED, Check

SECTION = "installation"
_REQUIREMENT = re.compile(r"^([\w.-]+)>=([\d.]+)$")  # a requirement without an extra, as in numpy>=1.26


def check_installation() -> Iterator[Check]:
    """Check the files, the versions of the packages, the cache of compiled code and the arithmetic."""
    installed = _installed_distribution()
    yield _check_files(installed)
    yield _check_versions(installed)
    yield _check_cache()
    yield _check_sums()
    yield _check_numbers()


def describe_machine() -> dict[str, str]:
    """Return versions, processor and threads, in the order in which they are shown.

    >>> "processor" in describe_machine()
    True
    """
    facts = dict(version_rows(program_versions()))
    facts["system"] = f"{platform.system()} {platform.release()}, {platform.libc_ver()[0] or 'C library unknown'}"
    facts["processor"] = f"{_processor_name()}, {os.cpu_count()} logical processors"
    for pool in threadpool_info():
        name = pool.get("internal_api", pool.get("user_api", "threads"))
        details = [pool.get(key) for key in ("version", "architecture", "threading_layer")]
        shown = " ".join(str(detail) for detail in details if detail)
        facts[f"{name} ({Path(pool['filepath']).parent.name})"] = f"{shown}, {pool['num_threads']} threads"
    facts["folder"] = str(Path(trueodds.__file__).parent)
    return facts


def _processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _installed_distribution() -> Distribution | None:
    """Return the installed distribution whose package is the imported one; None for a clone or an editable one."""
    try:
        found = distribution("trueodds")
    except PackageNotFoundError:
        return None
    module = Path(str(found.locate_file("trueodds/__init__.py")))
    is_imported = module.is_file() and module.samefile(trueodds.__file__)
    return found if is_imported and found.files is not None else None


def _check_files(installed: Distribution | None) -> Check:
    """Compare the installed files with the hashes in RECORD, which pip wrote when it installed them."""
    name = "hashes of the installed files"
    if installed is None:
        detail = f"no RECORD lists the files of {Path(trueodds.__file__).parent}: a clone or an editable installation"
        return Check(SECTION, name, NOT_CHECKED, detail)
    folder = Path(str(installed.locate_file("trueodds")))
    recorded = {file.as_posix(): file for file in installed.files or () if file.hash is not None}
    package = [path for path in recorded if path.startswith("trueodds/")]
    problems = []
    for path in package:
        file = recorded[path]
        try:
            digest = base64.urlsafe_b64encode(sha256(file.locate().read_bytes()).digest()).rstrip(b"=").decode()  # type: ignore[attr-defined]
        except OSError:
            problems.append(f"{path} is missing")
            continue
        if file.hash is None or file.hash.mode != "sha256":
            problems.append(f"{path} has no SHA-256 hash")
        elif digest != file.hash.value:
            problems.append(f"{path} was changed")
    unknown = {f"trueodds/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.py")} - set(package)
    problems += [f"{path} does not belong to the package" for path in sorted(unknown)]
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        return Check(SECTION, name, FAILED, "; ".join(problems[:5]) + more)
    if not package:
        return Check(SECTION, name, NOT_CHECKED, "RECORD has no hashes of this package")
    return Check(SECTION, name, PASSED, f"{len(package)} files have the SHA-256 hashes of RECORD")


def _check_versions(installed: Distribution | None) -> Check:
    """Compare the versions of the required packages with the oldest ones that are allowed."""
    name = "versions of the required packages"
    if installed is None:
        with suppress(PackageNotFoundError):
            installed = distribution("trueodds")
    if installed is None or installed.requires is None:
        return Check(SECTION, name, NOT_CHECKED, "no metadata of the package, which would list what it requires")
    found, problems = [], []
    for requirement in installed.requires:
        match = _REQUIREMENT.match(requirement.replace(" ", ""))
        if match is None:
            continue
        package, oldest = match.groups()
        try:
            actual = version(package)
        except PackageNotFoundError:
            problems.append(f"{package} is not installed")
            continue
        found.append(f"{package} {actual}")
        if _version_numbers(actual) < _version_numbers(oldest):
            problems.append(f"{package} {actual} is older than {oldest}")
    if problems or not found:
        return Check(SECTION, name, FAILED, "; ".join(problems) or "the metadata require nothing")
    return Check(SECTION, name, PASSED, ", ".join(found))


def _version_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3])


def _check_cache() -> Check:
    """Check that compiled code is kept between calls: in the package, or in a cache that can be written."""
    from trueodds.kernels.bins import number_bins  # a kernel of every error with bins
    from trueodds.kernels.compilation import precompiled_folder

    name = "cache of compiled code"
    if (precompiled := precompiled_folder()) is not None:
        return Check(SECTION, name, PASSED, f"the compiled code of the package is used: {precompiled}")
    folder = number_bins.stats.cache_path
    if not folder:
        return Check(SECTION, name, FAILED, "nothing is kept: each process compiles again. Set NUMBA_CACHE_DIR.")
    if os.path.isdir(folder) and os.access(folder, os.W_OK):
        return Check(SECTION, name, PASSED, f"{folder} can be written")
    return Check(SECTION, name, FAILED, f"{folder} cannot be written. Set NUMBA_CACHE_DIR to a folder of your own.")


def _check_sums() -> Check:
    """Compare sums and products of matrices, which NumPy and BLAS compute by the processor's widest instructions."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(200, 300)), rng.normal(size=300)
    exact = np.array([math.fsum(x * y for x, y in zip(row, b.tolist(), strict=True)) for row in A.tolist()])
    tolerance = 300 * sys.float_info.epsilon * (np.abs(A) @ np.abs(b))  # the bound of any order of summation
    deviation = float(np.max(np.abs(A @ b - exact) / tolerance))
    detail = f"200 products of 300 numbers deviate from exact sums by up to {deviation:.2g} times the bound of rounding"
    return Check(SECTION, "sums by NumPy and BLAS", PASSED if deviation <= 1 else FAILED, detail)


def _check_numbers() -> Check:
    """Check that numbers are IEEE's: rounding to the nearest, and no small number is taken for 0."""
    smallest = np.array([sys.float_info.min]) / 2.0
    facts = {
        "numbers below 2.2e-308 are kept": bool(smallest[0] > 0),
        "sums are rounded to the nearest number": float(np.float64(1.0) + np.float64(2.0**-53)) == 1.0,
        "Python's integers have 64 bits in arrays": np.iinfo(np.intp).bits == 64,
    }
    wrong = [fact for fact, holds in facts.items() if not holds]
    detail = f"not so: {'; '.join(wrong)}" if wrong else "; ".join(facts)
    return Check(SECTION, "floating-point numbers", FAILED if wrong else PASSED, detail)
