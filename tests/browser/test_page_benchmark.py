"""Is the page small, and does `python -m benchmarks page` report its size and the times to open it?"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report_page


@pytest.mark.slow
def test_a_page_of_ten_classes_is_within_its_limit(page_path: Callable[[str], Path]) -> None:
    assert page_path("ten").stat().st_size <= 1000 * report_page.SIZE_LIMITS[10]


def test_the_benchmark_reports_size_and_times(browser: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "page", "--classes", "3", "--repeats", "1"]
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [*command, "--folder", str(tmp_path)], capture_output=True, text=True, cwd=root, check=False, encoding="utf-8"
    )
    assert ran.returncode == 0, ran.stderr
    size, paint, load = ran.stdout.splitlines()
    assert 100 < int(re.fullmatch(r"page of 3 classes +([\d,]+) kB", size)[1].replace(",", "")) < 1500
    painted, loaded = (float(re.search(r"([\d.]+) s$", line)[1]) for line in (paint, load))
    assert 0 < painted < 60
    assert 0 < loaded < 60
