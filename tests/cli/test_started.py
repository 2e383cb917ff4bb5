"""Does the command start by its name and as a module?"""

import subprocess
import sys

import trueodds


def test_the_module_is_the_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "trueodds", "--version"], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert result.stdout.startswith(f"trueodds {trueodds.__version__}")
    wrong = subprocess.run(
        [sys.executable, "-m", "trueodds", "no-such"], capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert (wrong.returncode, "no-such" in wrong.stderr) == (2, True)
