"""Build a wheel that contains the kernels as machine code for this platform, besides the pure one.

python .ci/compiled_wheel.py [FOLDER]    default: dist

The machine code runs on processors with the features below and with the versions of Python and numba that compile it.
With others, the package compiles its kernels on first use, as if the pure wheel were installed. Requires the packages
of `pip install '.[report]' wheel`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

# The processors: those since 2013 (Haswell, Zen) on x86-64, all on ARM.
CPU = {"x86_64": "x86-64-v3", "AMD64": "x86-64-v3"}.get(platform.machine(), "generic")
FEATURES = ["avx2", "bmi", "bmi2", "fma", "f16c", "lzcnt", "movbe"] if CPU != "generic" else []

WORKLOAD = """
import contextlib
import dataclasses
import numpy as np
import trueodds as to
from numba.core.compiler import CompileResult

# The listing of the types in a function contains the path of its source, which is another one in each build.
reduce = CompileResult._reduce
CompileResult._reduce = lambda result: reduce(result._replace(type_annotation=""))

rng = np.random.default_rng(0)


def predictions(n, k, dtype):
    z = rng.normal(size=(n, k))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = P.astype(dtype)
    return to.Predictions(y, P) if k > 1 else to.Predictions(y, P[:, 0])


def few(settings, data):
    # Many rows need the same kernels with few resamples; of few rows, their number decides whether NumPy does it.
    return {"resamples": 99} if "resamples" in settings and data.P.size > 5000 else {}


for dtype in (np.float64, np.float32):
    for n, k in ((400, 2), (400, 3), (5000, 10), (400, 20)):
        preds = predictions(n, k, dtype)
        to.audit(preds).to_html("page.html")
        to.audit(to.tally(preds))
        binary = to.Predictions(preds.y == 0, preds.P[:, 0])
        for data in (preds, binary):
            for name in dir(to.estimators):
                with contextlib.suppress(to.InputError):
                    to.measure(data, getattr(to.estimators, name)(), **few({"resamples"}, data))
            for name in dir(to.tests):
                with contextlib.suppress(to.InputError):
                    test = getattr(to.tests, name)()
                    to.test(data, dataclasses.replace(test, **few({f.name for f in dataclasses.fields(test)}, data)))
            if n * k > 5000:
                continue
            for name in dir(to.calibrators):
                with contextlib.suppress(to.InputError, AttributeError, TypeError):
                    to.fit(data, getattr(to.calibrators, name)())
            for name in dir(to.diagrams):
                with contextlib.suppress(to.InputError, TypeError):
                    to.draw(data, getattr(to.diagrams, name)())
"""


def main(folder: Path) -> Path:
    """Build the wheel in this folder and return its path."""
    root = Path(__file__).parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    run = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([*run, "pip", "wheel", *quiet, "--no-deps", "--wheel-dir", name, str(root)], check=True)
        subprocess.run([*run, "wheel", "unpack", "--dest", name, str(next(place.glob("*.whl")))], check=True)
        package = next(place.glob("trueodds-*/"))
        code = package / "trueodds" / "kernels" / "precompiled"
        code.mkdir()
        environment = {"NUMBA_CPU_NAME": CPU, "NUMBA_CACHE_DIR": str(place / "cache"), "TRUEODDS_PRECOMPILE": str(code)}
        environment["PYTHONPATH"] = str(package)  # its sources are those whose hash the code has to match
        # The same code in the same order in each build: numba numbers its functions, and iterates over sets of strings.
        environment |= {"PYTHONHASHSEED": "0", "TRUEODDS_THREADS": "1"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"  # bytecode is not part of the package, and contains times
        subprocess.run([sys.executable, "-c", WORKLOAD], check=True, cwd=name, env=os.environ | environment)
        (code / "target.json").write_text(
            json.dumps({"machine": platform.machine(), "features": FEATURES}), encoding="utf-8"
        )
        metadata = next(package.glob("*.dist-info")) / "WHEEL"
        metadata.write_text(
            metadata.read_text(encoding="utf-8").replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"),
            encoding="utf-8",
        )
        subprocess.run([*run, "wheel", "pack", "--dest-dir", name, str(package)], check=True)
        version = f"cp{sys.version_info.major}{sys.version_info.minor}"
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        # The machine code calls no library, so the oldest tag for Linux that package indexes accept is right.
        system = system.replace("linux_", "manylinux2014_")
        tags = ["--python-tag", version, "--abi-tag", "none", "--platform-tag", system, "--remove"]
        tagged = subprocess.run(
            [*run, "wheel", "tags", *tags, str(next(place.glob("*.whl")))],
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        built = place / tagged.stdout.split()[-1]
        return built.rename(folder / built.name)


if __name__ == "__main__":
    sys.stdout.write(f"{main(Path(sys.argv[1] if len(sys.argv) > 1 else 'dist'))}\n")
