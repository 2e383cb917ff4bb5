"""Does a command that is run as on another processor use that processor's code?"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.other_processor import CORES

ROOT = Path(__file__).parents[1]
QUERY = """
import json
import numpy, scipy.linalg, threadpoolctl
from numba.core.registry import cpu_target
from tests.other_processor import dispatched_features
libraries = [each for each in threadpoolctl.threadpool_info() if each["internal_api"] == "openblas"]
built = str(numpy.show_config(mode="dicts")["Build Dependencies"]["blas"])
print(json.dumps({
    "numpy": dispatched_features(),
    "numba": cpu_target.target_context.codegen().magic_tuple(),
    "openblas": sorted(each["architecture"] for each in libraries if "DYNAMIC_ARCH" in built),
}))
"""


def code_in_use(*before: str) -> dict[str, list[str]]:
    """What the libraries of a fresh process report about the code that they use."""
    names = ("NUMBA_CPU_NAME", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE", "GLIBC_TUNABLES")
    names += ("PYTHONWARNDEFAULTENCODING",)  # how other libraries open their files does not matter here
    environment = {name: value for name, value in os.environ.items() if name not in names}
    ran = subprocess.run(
        [sys.executable, *before, *([sys.executable] if before else []), "-W", "error", "-c", QUERY],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
        encoding="utf-8",
    )
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def as_it_is() -> dict[str, list[str]]:
    return code_in_use()


@pytest.fixture(scope="module")
def as_another() -> dict[str, list[str]]:
    return code_in_use("-m", "tests.other_processor")


@pytest.mark.slow
def test_numpy_and_numba_use_the_code_of_the_oldest_processor(as_another: dict[str, list[str]]) -> None:
    assert as_another["numpy"] == []
    assert as_another["numba"][1:] == ["generic", ""]


@pytest.mark.slow
def test_openblas_uses_the_code_of_another_core(
    as_it_is: dict[str, list[str]], as_another: dict[str, list[str]]
) -> None:
    if not as_it_is["openblas"] or platform.machine() not in CORES:
        pytest.skip("no OpenBLAS that has code for several cores")
    assert as_another["openblas"] != as_it_is["openblas"]


@pytest.mark.slow
def test_numba_keeps_the_code_of_either_processor_under_a_key_of_its_own(
    as_it_is: dict[str, list[str]], as_another: dict[str, list[str]]
) -> None:
    # numba's index of compiled functions is by signature and this tuple, so that one folder holds both.
    assert as_another["numba"] != as_it_is["numba"]
