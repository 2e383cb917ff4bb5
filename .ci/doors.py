"""Test the connections to other tools against the real libraries, in one environment for each of them.

`python .ci/doors.py [NAME ...] [--folder DIR]` makes environments in DIR (build/doors), keeps them, and prints a line
per door.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The extras and packages that each test module needs.
DOORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sql": ("files", ("duckdb>=1.0", "pandas", "pglast>=6")),
    "action": ("files,report", ("pandas", "pyyaml")),
    "mlflow": ("mlflow", ()),
    "language_models": ("files,harness", ("inspect-ai",)),
    "loggers": ("wandb,tensorboard", ("tensorboard",)),
    "evaluate": ("files", ("evaluate",)),
    "skore": ("files,report", ("skore",)),
    "evidently": ("files,report", ("evidently", "pandas<3")),  # 0.7.23 imports what pandas 3.1 lacks
}
TOOLS = ("pytest", "hypothesis")


def test_door(name: str, folder: Path) -> bool:
    """Install what the door needs, run its tests, and print one line."""
    extras, packages = DOORS[name]
    environment, start = folder / name, time.monotonic()
    python = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(environment, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands = [
        [*install, "--editable", f"{ROOT}[{extras}]", *packages, *TOOLS],
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/doors/test_{name}.py"],
    ]
    summary = ""
    for command in commands:
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        summary = (ran.stdout.strip() or ran.stderr.strip() or "installed").splitlines()[-1]
        if ran.returncode != 0:
            print(ran.stdout + ran.stderr, file=sys.stderr)
            break
    print(
        f"{'ok  ' if ran.returncode == 0 else 'FAIL'} {name}: {summary} ({time.monotonic() - start:.0f} s)", flush=True
    )
    return ran.returncode == 0


def main() -> int:
    """Test the doors that are named, or all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DOORS)}; by default all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "doors", help="where the environments are made")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(DOORS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(DOORS)}")
    return 0 if all([test_door(name, arguments.folder) for name in arguments.names or DOORS]) else 1


if __name__ == "__main__":
    sys.exit(main())
