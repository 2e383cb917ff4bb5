"""Does importing and measuring stay light?"""

from __future__ import annotations

import subprocess
import sys

OPTIONAL = (
    "pyarrow",
    "pandas",
    "polars",
    "dask",
    "pyspark",
    "torch",
    "matplotlib",
    "jinja2",
    "rich",
    "duckdb",
    "netCDF4",
)
HEAVY = ("sklearn", "scipy.stats", "numba")


def loaded(code: str, names: tuple[str, ...]) -> set[str]:
    """Which of these packages a fresh interpreter has loaded after running the code."""
    tell = f"\nimport sys; print('|'.join(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code + tell], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return set(filter(None, done.stdout.strip().split("|")))


def test_importing_loads_nothing_optional_and_nothing_heavy() -> None:
    assert (
        loaded("import trueodds; dir(trueodds); trueodds.__version__", (*OPTIONAL, *HEAVY, "scipy", "click")) == set()
    )


def test_public_names_load_on_first_use_and_unknown_ones_are_attribute_errors() -> None:
    import pytest

    import trueodds

    assert trueodds.Predictions.__name__ == "Predictions"
    assert set(trueodds.__all__) <= set(dir(trueodds))
    with pytest.raises(AttributeError, match="No trueodds attribute mesure"):
        trueodds.mesure  # noqa: B018


def test_checking_data_loads_nothing_heavy() -> None:
    code = "import trueodds; trueodds.Predictions([0, 1], [0.2, 0.7], group=['a', 'b'])[[0]]"
    assert loaded(code, (*OPTIONAL, *HEAVY)) == set()


def test_importing_metrics_loads_nothing_heavy() -> None:
    assert loaded("import trueodds.metrics; dir(trueodds.metrics)", (*OPTIONAL, *HEAVY, "click")) == set()


def test_naming_members_loads_none() -> None:
    families = "estimators:ESTIMATORS hypotests:TESTS calibrators:CALIBRATORS diagrams:DIAGRAMS"
    code = (
        "import importlib, sys\n"
        f"for family, table in (each.split(':') for each in '{families}'.split()):\n"
        "    found = getattr(importlib.import_module('trueodds.' + family), table, None)\n"
        "    before = set(sys.modules)\n"
        "    if found is not None:\n"
        "        found.names()\n"
        "    assert set(sys.modules) == before, family\n"
    )
    assert loaded(code, (*OPTIONAL, *HEAVY)) == set()


def test_measuring_loads_neither_sklearn_nor_scipy_stats() -> None:
    code = (
        "from trueodds import Predictions\n"
        "from trueodds.estimators import ESTIMATORS\n"
        "from trueodds.lenses.lens_by_name import as_lens\n"
        "preds = Predictions([0, 1, 2], [[.5, .3, .2], [.1, .6, .3], [.2, .2, .6]])\n"
        "for name in ('ece', 'mce', 'rmsce', 'brier', 'log_loss'):\n"
        "    estimator = ESTIMATORS.make(name, {})\n"
        "    for lens in ('confidence', 'canonical', 'classwise'):\n"
        "        for view in as_lens(lens).views(preds):\n"
        "            str(estimator(view))\n"
    )
    assert loaded(code, ("sklearn", "scipy.stats", *OPTIONAL)) == set()
