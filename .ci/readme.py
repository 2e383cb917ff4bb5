"""Does the README work for a new user? Its commands and its Python run as they stand, in a fresh clone of this commit.

`python .ci/readme.py` takes the interpreter that runs it as `python3` and needs nothing but a package index.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a new user does not have: this checkout on the path, an active environment, settings of this program or of make.
FOREIGN = re.compile(r"PYTHON|VIRTUAL_ENV|TRUEODDS_|NUMBA_|NPY_|OPENBLAS_|GLIBC_|MAKE|MFLAGS|VENV")

RUN_BEFORE = ("make test",)  # by .ci/run, in its own checkout, with more tests


def steps(page: str) -> Iterator[str]:
    """The page's commands, each as a line of shell, in their order; a block of Python is one command."""
    for language, block in re.findall(r"^```(console|python)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            yield f"python -c {shlex.quote(block)}"
        else:
            yield from (line for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE) if line not in RUN_BEFORE)


def script(commands: Iterable[str]) -> str:
    """One shell for all commands, which ends at the first one that fails and says how long each took."""
    lines = ["set -e"]
    for step in commands:
        title = step.splitlines()[0]
        lines += [f"echo {shlex.quote(f'readme: {title}')}", "SECONDS=0", step, 'echo "readme: ${SECONDS} s"']
    return "\n".join(lines) + "\n"


def main() -> int:
    """Clone, run, and pass on the shell's exit code."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        clone, python3 = Path(folder, "trueodds"), Path(folder, "bin", "python3")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        python3.parent.mkdir()
        python3.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        python3.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        environment["PATH"] = f"{python3.parent}{os.pathsep}{environment['PATH']}"
        commands = script(steps((clone / "README.md").read_text(encoding="utf-8")))
        ran = subprocess.run(["bash", "-c", commands], cwd=clone, env=environment, check=False)
    sys.stderr.write(f"readme: exit code {ran.returncode} after {time.monotonic() - start:.0f} s\n")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
