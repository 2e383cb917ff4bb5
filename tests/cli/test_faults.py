"""Whatever goes wrong: a code, the problem, what was got, the fix, exit code 2, and never a traceback."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from trueodds.cli import main

PROGRAM = [sys.executable, "-m", "trueodds"]


def labelled(stderr: str) -> dict[str, str]:
    """The five lines of an error; anything more or less fails."""
    first, *rest = stderr.splitlines()
    assert first.startswith("error TO")
    assert [line.split(": ")[0] for line in rest] == ["problem", "got", "fix", "more"]
    return {"code": first.split()[1]} | dict(line.split(": ", 1) for line in rest)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["adit", "x.csv"], "TO601", "audit"),
        (["audit"], "TO601", "FILE"),
        (["audit", "x.csv", "--htm"], "TO601", "--html"),
        (["audit", "x.csv", "--alpha", "2"], "TO601", "alpha"),
        (["audit", "x.csv", "--alpha", "0"], "TO601", "alpha"),
        (["audit", "x.csv", "--seed", "-1"], "TO601", "seed"),
        (["audit", "x.csv", "--mode", "both"], "TO601", "mode"),
        (["audit", "x.csv", "--json"], "TO601", "--json"),
        (["measure", "x.csv", "--set", "bins"], "TO601", "NAME=VALUE"),
        (["measure", "x.csv", "--bins", "[0, 1"], "TO601", "JSON"),
        (["list", "colors"], "TO601", "colors"),
        (["draw", "x.csv"], "TO601", "--out"),
        (["audit", "nowhere.csv"], "TO301", "nowhere.csv"),
        (["apply", "nowhere.json", "x.csv", "--out", "y.csv"], "TO503", "nowhere.json"),
        (["merge", "nowhere.tally.json", "--out", "y.tally.json"], "TO407", "nowhere"),
    ],
)
def test_a_wrong_command_line_is_a_coded_error(run: Run, words: list[str], code: str, message: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert done.stdout == ""
    error = labelled(done.stderr)
    assert error["code"] == code
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "near"),
    [
        (["measure", "--estimator", "eec"], "TO201", "ece"),
        (["test", "--test", "consistancy"], "TO201", "consistency"),
        (["draw", "--diagram", "reliabilty", "--out", "d.svg"], "TO201", "reliability"),
        (["fit", "--method", "temprature", "--out", "c.json"], "TO201", "temperature"),
        (["measure", "--set", "bin=3"], "TO202", "bins"),
        (["measure", "--partition", "unifrom"], "TO203", "uniform"),
        (["measure", "--lens", "confidense"], "TO204", "confidence"),
        (["measure", "--label", "lable"], "TO3", "label"),
    ],
)
def test_a_misspelled_name_gets_suggestions(
    run: Run, overconfident: str, folder: Path, words: list[str], code: str, near: str
) -> None:
    command, *rest = [str(folder / word) if word in ("d.svg", "c.json") else word for word in words]
    done = run(command, overconfident, *rest)
    assert done.exit_code == 2
    error = labelled(done.stderr)
    assert error["code"].startswith(code)
    assert near in error["fix"]


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["fit", "x.csv"], "Add --out cal.json."),
        (["apply", "cal.json", "x.csv"], "Add --out recalibrated.csv."),
        (["draw", "x.csv"], "Add --out diagram.svg."),
        (["tally", "x.csv"], "Add --out rows.tally.json."),
        (["merge", "a.json", "b.json"], "Add --out sum.tally.json."),
        (["test", "x.csv", "--brief"], "Omit it, or use audit."),
        (["measure", "x.csv", "--html", "r.html"], "Omit it, or use audit or compare or monitor."),
        (["draw", "x.csv", "--out", "r.gif"], "Use one of .svg .png .pdf .csv .json."),
        (["audit", "x.csv", "--fail-on", "ece>=x"], "For instance 'ece.low>0.02'."),
    ],
)
def test_a_remedy_is_one_that_the_command_has(run: Run, words: list[str], fix: str) -> None:
    assert labelled(run(*words).stderr)["fix"] == fix


def test_bad_rows_say_which(run: Run, folder: Path) -> None:
    path = folder / "bad.csv"
    path.write_text("label,p_0,p_1\n0,0.5,0.5\n1,-2,3\n", encoding="utf-8")
    done = run("audit", path)
    assert done.exit_code == 2
    assert labelled(done.stderr)["code"] == "TO102"
    assert "-2" in done.stderr


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(run: Run, folder: Path, option: str) -> None:
    for place in (folder / "no" / "a.out", folder):
        done = run("audit", "nowhere.csv", option, place)
        assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO602")


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--html"), ("audit", "--json"), ("measure", "--json"), ("fit", "--out"), ("tally", "--out"),
        ("draw", "--out"),
    ],
)  # fmt: skip
def test_an_output_path_that_ends_with_a_separator_is_a_folder(run: Run, folder: Path, words: tuple[str, str]) -> None:
    command, option = words
    done = run(command, "nowhere.csv", option, f"{folder}/out.json/")
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO602")


def test_a_name_in_an_error_cannot_steer_the_terminal(run: Run) -> None:
    done = run("audit", "a\x1b[31m\nerror TO000.csv")
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 5


def test_a_fault_of_ours_exits_with_2_and_its_name(
    run: Run, overconfident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **settings: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("trueodds.measure", broken)
    done = run("measure", overconfident)
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO699")
    assert "RuntimeError: out of order" in done.stderr


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (MemoryError(), "TO605"),
        (ImportError("no pyarrow", name="pyarrow"), "TO604"),
        (PermissionError(13, "no"), "TO602"),
    ],
)
def test_faults_of_the_machine_have_codes(
    run: Run, overconfident: str, monkeypatch: pytest.MonkeyPatch, problem: Exception, code: str
) -> None:
    def broken(*args: object, **settings: object) -> None:
        raise problem

    monkeypatch.setattr("trueodds.measure", broken)
    assert labelled(run("measure", overconfident).stderr)["code"] == code


def test_no_command_shows_the_help_and_is_bad_usage(run: Run) -> None:
    done = run()
    assert done.exit_code == 2
    assert "Usage: trueodds" in done.stderr


def process(*words: object, **more: object) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([*PROGRAM, *map(str, words)], text=True, **pipes, encoding="utf-8")  # type: ignore[call-overload]


def test_a_process_exits_with_the_code_and_no_traceback() -> None:
    ran = process("audit", "nowhere.csv")
    out, err = ran.communicate(timeout=60)
    assert (ran.returncode, out) == (2, "")
    assert labelled(err)["code"] == "TO301"


def test_a_limit_of_memory_below_the_buffers_of_openblas_is_an_error_before_the_work(
    run: Run, overconfident: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # OpenBLAS itself would end the process with the exit code 1, which is that of a failed gate.
    resource = pytest.importorskip("resource")
    monkeypatch.setattr("trueodds.cli.open_data.BLAS_BUFFER_BYTES", 2**60)
    words = ("measure", overconfident, "--interval", "none", "--fail-on", "ece>0.99")
    assert run(*words).exit_code == 0  # without a limit nothing is allocated
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**40, 2**40))
    done = run(*words)
    assert (done.exit_code, labelled(done.stderr)["code"]) == (2, "TO605")


@pytest.mark.slow
def test_a_failed_gate_is_exit_code_1_of_the_process(overconfident: str) -> None:
    ran = process("audit", overconfident, "--resamples", 99, "--fail-on", "reject", "--json", "-")
    out, err = ran.communicate(timeout=300)
    assert ran.returncode == 1
    assert out.startswith("{")
    assert err.startswith("gate failed: reject (")


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
def test_a_reader_that_goes_away_is_no_failed_gate() -> None:
    read, write = os.pipe()
    os.close(read)
    ran = process("list", stdout=write)
    os.close(write)
    _, err = ran.communicate(timeout=60)
    assert (ran.returncode, err) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
@pytest.mark.parametrize("word", ["list", "--help"])
def test_a_full_disk_is_a_coded_error(word: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = process(word, stdout=full)
        _, err = ran.communicate(timeout=60)
    assert ran.returncode == 2
    assert labelled(err)["code"] == "TO602"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_message_that_cannot_be_written_changes_no_exit_code(overconfident: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        wrong = process("no-such", stderr=full)
        assert (*wrong.communicate(timeout=60), wrong.returncode) == ("", None, 2)
        words = ("audit", overconfident, "--resamples", 39, "--json", "-", "--fail-on", "ece>0.99")
        ran = process(*words, stderr=full)
        out, _ = ran.communicate(timeout=300)
    assert (ran.returncode, out[:1]) == (0, "{")


@pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_that_nobody_reads_is_no_failed_gate(word: str) -> None:
    read, write = os.pipe()
    os.close(read)
    ran = process(word, stdout=write)
    os.close(write)
    _, err = ran.communicate(timeout=60)
    assert (ran.returncode, err) == (141, "")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
@pytest.mark.parametrize(("word", "code"), [("list", 0), ("no-such", 2)])
def test_streams_that_are_closed_change_no_exit_code(word: str, code: int) -> None:
    closed = f"'{sys.executable}' -m trueodds {word}"
    for command in (f"{closed} >&-", f"{closed} 2>&-", f"{closed} >&- 2>&-"):
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, encoding="utf-8")
        assert (ran.returncode, "Traceback" in ran.stderr) == (code, False)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")
def test_control_c_is_130_without_a_traceback(overconfident: str) -> None:
    ran = process("audit", overconfident, "--resamples", 2_000_000)
    time.sleep(4)
    ran.send_signal(signal.SIGINT)
    try:
        _, err = ran.communicate(timeout=60)
    finally:
        ran.kill()
    assert ran.returncode == 130
    assert err.splitlines()[-1] == "stopped"
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["--help"], ["audit", "--help"], ["--version"], ["list"]], ids=" ".join)
def test_help_and_list_load_no_numpy(words: list[str]) -> None:
    code = (
        "import contextlib, sys\nfrom trueodds.cli import main\n"
        f"with contextlib.suppress(SystemExit): main({words!r})\n"
        "loaded = {'numpy', 'rich', 'jinja2', 'matplotlib', 'sklearn', 'scipy', 'numba'} & set(sys.modules)\n"
        "print(loaded, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    assert ran.stderr.strip() == "set()"


@pytest.mark.parametrize(("encoding", "printed"), [("cp1252", "·"), ("shift_jis", "|")])
def test_a_terminal_that_lacks_a_character_shows_it_in_ascii(
    overconfident: str, encoding: str, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit, match="0"):
        main(["test", overconfident, "--resamples", "999"])
    stream.seek(0)
    text = stream.read()
    assert "p <= 0.001: " in text
    assert f" {printed} statistic " in text
    assert "?" not in text
