"""Does a signal end the command at any time by its exit code, without a traceback, and leave no part of a file?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.slow_parameters import slow_except

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see what is caught")

MODULE = ["-m", "trueodds"]
SCRIPT = ["-c", "import sys; from trueodds.__main__ import run; sys.exit(run())"]  # as pip writes it


def listening(process: subprocess.Popen[str]) -> None:
    """Wait until the command catches SIGTERM, which Python by itself does not."""
    for _ in range(6000):
        (caught,) = (
            line.split()[1]
            for line in Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
            if line.startswith("SigCgt")
        )
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.005)
    raise TimeoutError


@pytest.mark.parametrize("start", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize("after", slow_except([0.0, 0.03, 0.15, 0.4, 1.0], [0.15]))
def test_an_interrupt_at_any_time_is_130_without_a_traceback(
    overconfident: str, start: list[str], after: float
) -> None:
    words = ["audit", overconfident, "--resamples", "2000000"]
    process = subprocess.Popen([sys.executable, *start, *words], stderr=subprocess.PIPE, text=True, encoding="utf-8")
    listening(process)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, err.strip()) == (130, "stopped")


@pytest.mark.slow
@pytest.mark.parametrize("number", slow_except([signal.SIGTERM, signal.SIGHUP], [signal.SIGTERM]))
def test_a_request_to_end_is_the_code_of_its_signal(overconfident: str, number: signal.Signals) -> None:
    words = [*MODULE, "audit", overconfident, "--resamples", "2000000"]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, encoding="utf-8")
    listening(process)
    time.sleep(0.5)
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, err.strip()) == (128 + number, "stopped")


def behind(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Code where the command stands, with the signals caught as the command catches them."""
    lines = (
        f"import os, signal, sys\nimport trueodds.__main__ as m\n"
        "m._install_signal_handlers()\n"
        f"sys.path[:0] = [{str(folder)!r}]\n{code}"
    )
    return subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False, timeout=60, encoding="utf-8"
    )


INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"


def test_an_interrupt_that_an_import_would_lose_ends_the_process(folder: Path) -> None:
    (folder / "deaf.py").write_text(
        f"import os, signal\ntry:\n    {INTERRUPT}\nexcept BaseException:\n    pass\n", encoding="utf-8"
    )
    ran = behind("import deaf\nprint('lost')", folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "stopped\n")


def test_an_interrupt_that_a_callback_would_lose_ends_the_process(folder: Path) -> None:
    ran = behind(f"class C:\n    def __del__(self): {INTERRUPT}\nC()\nprint('lost')", folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "stopped\n")


def test_a_second_signal_ends_what_the_first_one_left_running(folder: Path) -> None:
    code = (
        f"import atexit\natexit.register(print, 'cleaned')\ntry:\n    {INTERRUPT}\nfinally:\n    {INTERRUPT}\n   "
        " print('no')"
    )
    ran = behind(code, folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "cleaned\n", "stopped\n")


CAUGHT = f"try:\n    {INTERRUPT}\nexcept BaseException:\n    pass\ntime.sleep(50)"
WAITING = f"lock = threading.Lock()\nlock.acquire()\ntry:\n    {INTERRUPT}\nfinally:\n    lock.acquire()"


@pytest.mark.parametrize("code", [CAUGHT, WAITING], ids=["caught", "waiting"])
def test_a_process_that_an_interrupt_did_not_end_ends_soon(folder: Path, code: str) -> None:
    ran = behind(f"import threading, time\nm._GRACE_SECONDS = 0.3\n{code}\nprint('lost')", folder)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "stopped\n")


def test_a_signal_that_is_ignored_stays_ignored(folder: Path) -> None:
    """As nohup and a shell without job control ask for."""
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    code = ignored + "m._install_signal_handlers()\nos.kill(os.getpid(), signal.SIGHUP)\nprint('on')"
    lines = f"import os, signal\nimport trueodds.__main__ as m\n{code}"
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False, encoding="utf-8")
    assert (ran.returncode, ran.stdout) == (0, "on\n")


def test_importing_the_package_catches_no_signal() -> None:
    code = "import signal; before = signal.getsignal(2), signal.getsignal(15)\nimport trueodds.__main__, trueodds.cli\n"
    subprocess.run(
        [sys.executable, "-c", f"{code}assert before == (signal.getsignal(2), signal.getsignal(15))"], check=True
    )


KILLED = """
import os, signal, sys
from trueodds.io import read
from trueodds.io.recalibrated_files import rewrite
batches = []
def transform(P):
    batches.append(P)
    if len(batches) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return P
rewrite(read(sys.argv[1], label=None, batch_rows=100), transform, sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "feather", "npz"])
def test_a_run_that_is_killed_while_it_writes_leaves_the_old_file_and_nothing_else(
    overconfident: str, folder: Path, form: str
) -> None:
    if not can_hide(folder):
        pytest.skip("no files without a name in here")
    out = folder / f"out.{form}"
    out.write_bytes(b"old")
    ran = subprocess.run([sys.executable, "-c", KILLED, overconfident, out], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert out.read_bytes() == b"old"
    assert [path.name for path in folder.iterdir()] == [out.name]


def can_hide(folder: Path) -> bool:
    """Whether the file system holds files without a name."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except (AttributeError, OSError):
        return False
    return True


def test_functions_registered_with_atexit_run_before_the_process_ends():
    code = "import atexit; atexit.register(print, 'registered', flush=True); from trueodds.__main__ import run; run()"
    command = [sys.executable, "-c", code, "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout.endswith(
        "registered\n"
    )


def test_a_profiler_prints_its_table_after_a_command():
    command = [sys.executable, "-m", "cProfile", "-m", "trueodds", "--version"]
    assert (
        "function calls" in subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    )
