"""Is a file there as a whole or not at all, does what it replaces keep its mode, and is nothing else ever replaced?"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trueodds.core import atomic_write
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to hold a file that is not complete: with a name, and, where the system can, without one."""
    if request.param == "named":
        monkeypatch.setattr(atomic_write, "_UNNAMED_FILE_FLAG", 0)
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in which, after the test, no file lies that the test did not name."""
    yield tmp_path
    assert [path.name for path in tmp_path.rglob(".*")] == []


def write(path: Path | str, content: bytes = b"new") -> None:
    with open_atomic(path, "TO407") as file:
        file.write(content)


def fail(path: Path, problem: BaseException) -> None:
    with open_atomic(path, "TO407") as file:
        file.write(b"a part")
        file.flush()
        raise problem


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.usefixtures("way")
def test_a_new_file_has_the_mode_that_open_would_give(folder: Path) -> None:
    before = os.umask(0o027)
    try:
        write(folder / "ours")
        (folder / "published").write_bytes(b"new")
    finally:
        os.umask(before)
    assert mode(folder / "ours") == mode(folder / "published") == "0o640"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_was_there_keeps_its_mode(folder: Path, bits: int) -> None:
    (folder / "f").write_bytes(b"old")
    (folder / "f").chmod(bits)
    write(folder / "f")
    assert ((folder / "f").read_bytes(), mode(folder / "f")) == (b"new", oct(bits))


@pytest.mark.usefixtures("way")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_was_there_keeps_its_owner(folder: Path) -> None:
    (folder / "f").write_bytes(b"old")
    os.chown(folder / "f", 1234, 5678)
    write(folder / "f")
    stat = (folder / "f").stat()
    assert (stat.st_uid, stat.st_gid) == (1234, 5678)


@pytest.mark.usefixtures("way")
def test_a_link_stays_and_what_it_leads_to_is_replaced(folder: Path) -> None:
    (folder / "real").write_bytes(b"old")
    (folder / "real").chmod(0o640)
    (folder / "one").symlink_to("real")
    (folder / "two").symlink_to(folder / "one")
    write(folder / "two")
    assert (folder / "two").is_symlink()
    assert (folder / "one").is_symlink()
    assert not (folder / "real").is_symlink()
    assert ((folder / "real").read_bytes(), mode(folder / "real")) == (b"new", "0o640")


@pytest.mark.usefixtures("way")
def test_a_link_to_nothing_makes_the_file_it_leads_to(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "link").symlink_to("deep/f")
    write(folder / "link")
    assert (folder / "link").is_symlink()
    assert (folder / "deep" / "f").read_bytes() == b"new"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), RuntimeError("x"), OSError(28, "full")])
def test_a_write_that_fails_leaves_what_was_there(folder: Path, problem: BaseException) -> None:
    (folder / "f").write_bytes(b"old")
    for name in ("f", "g"):
        with pytest.raises((KeyboardInterrupt, RuntimeError, InputError)):
            fail(folder / name, problem)
    assert [path.name for path in folder.iterdir()] == ["f"]
    assert (folder / "f").read_bytes() == b"old"


@pytest.mark.usefixtures("way")
def test_until_the_end_readers_see_what_was_there(folder: Path) -> None:
    (folder / "f").write_bytes(b"old")
    with open_atomic(folder / "f", "TO407") as file:
        file.write(b"new")
        file.flush()
        assert (folder / "f").read_bytes() == b"old"
    assert (folder / "f").read_bytes() == b"new"


@pytest.mark.usefixtures("way")
def test_the_longest_name_of_a_file_system_can_be_written(folder: Path) -> None:
    write(folder / ("n" * 255))
    assert (folder / ("n" * 255)).read_bytes() == b"new"


@pytest.mark.usefixtures("way")
def test_several_writers_of_one_file_each_write_a_whole_one(folder: Path) -> None:
    contents = [bytes([65 + i]) * 1_000_000 for i in range(4)]
    threads = [threading.Thread(target=write, args=(folder / "f", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (folder / "f").read_bytes() in contents


def test_what_a_killed_writer_left_is_removed_by_the_next_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_UNNAMED_FILE_FLAG", 0)
    code = (
        "import os, signal, sys; from trueodds.core import atomic_write\n"
        "atomic_write._UNNAMED_FILE_FLAG = 0\n"
        "with atomic_write.open_atomic(sys.argv[1], 'TO407') as file:\n"
        "    file.write(b'a part'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", code, folder / "f"], check=False)
        assert killed.returncode == -signal.SIGKILL
    (left,) = folder.iterdir()  # one for all, and not one for each
    assert left.name.startswith(".trueodds-")
    write(folder / "f")
    assert [path.name for path in folder.iterdir()] == ["f"]


def test_what_another_writer_is_still_writing_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_UNNAMED_FILE_FLAG", 0)
    with open_atomic(folder / "f", "TO407") as first:
        first.write(b"first")
        write(folder / "f", b"second")
        assert (folder / "f").read_bytes() == b"second"
    assert (folder / "f").read_bytes() == b"first"


def test_a_file_of_somebody_else_by_that_name_is_not_touched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "_UNNAMED_FILE_FLAG", 0)
    with open_atomic(folder / "f", "TO407"):
        (part,) = folder.iterdir()
    part.write_bytes(b"published")
    with part.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # it is in use
        write(folder / "f")
    assert part.read_bytes() == b"published"
    part.unlink()


# What is no file


def test_a_pipe_is_written_and_stays(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((folder / "pipe").read_bytes()))
    reader.start()
    write(folder / "pipe")
    reader.join()
    assert received == [b"new"]
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_written_and_stays(folder: Path) -> None:
    null = folder / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices in here")
    write(null)
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_pipe_gets_nothing_of_a_write_that_fails(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(RuntimeError):
        fail(folder / "pipe", RuntimeError("x"))
    assert os.read(reader, 10) == b""
    os.close(reader)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_a_descriptor_goes_on_where_it_stands(folder: Path, name: str) -> None:
    if name == "link":
        (folder / "link").symlink_to("/dev/stdout")
        name = str(folder / "link")
    if not Path(name).exists():
        pytest.skip(f"no {name} in here")
    code = (
        "import sys; from trueodds.core.atomic_write import open_atomic\n"
        "print('before')\n"
        "with open_atomic(sys.argv[1], 'TO407') as file: file.write(b'new\\n')\n"
        "print('after')"
    )
    with (folder / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code, name], stdout=out, check=True)
    assert (folder / "out").read_text(encoding="utf-8") == "before\nnew\nafter\n"


# What cannot be written


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no/f", "No such file.*create it"),
        ("f/f", "Not a directory.*name of the folder"),
        (".", "Is a directory.*Name a file"),
        ("n" * 256, "too long"),
        ("a\0b", "NUL"),
        ("a\ud800b", "surrogates|ordinal not in range"),  # as the encoding of file names is UTF-8 or ASCII
    ],
)
def test_a_place_that_cannot_be_written_is_a_coded_error(folder: Path, name: str, why: str) -> None:
    (folder / "f").write_bytes(b"old")
    with pytest.raises(InputError, match=why) as caught:
        write(f"{folder}/{name}")
    assert caught.value.code == "TO407"
    assert [path.name for path in folder.iterdir()] == ["f"]


@pytest.mark.parametrize("name", ["loop", "loop/f"])
def test_a_symbolic_link_to_itself_is_a_coded_error(folder: Path, name: str) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="symbolic link that leads to itself") as caught:
        write(f"{folder}/{name}")
    assert (caught.value.code, caught.value.got) == ("TO407", f"{folder}/{name}: Too many levels of symbolic links")


def test_the_folder_of_an_unknown_user_is_a_coded_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match="Got ~nosuchuser/f: No such file"):
        write("~nosuchuser/f")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_device_is_a_coded_error() -> None:
    with pytest.raises(InputError, match="No space left"):
        write("/dev/full")


AS_SOMEBODY = """
import os, sys
from trueodds.core import atomic_write
from trueodds.core.errors import InputError
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for name in sys.argv[1:]:
    try:
        with atomic_write.open_atomic(name, "TO407") as file:
            file.write(b"new")
        print("written")
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_are_those_of_open() -> None:
    """A read-only file is refused although its folder permits replacing it; a new file needs a writable folder."""
    with tempfile.TemporaryDirectory() as made:  # not of pytest, whose folders are closed to others
        folder = Path(made)
        folder.chmod(0o755)
        for name, bits in (("locked", 0o555), ("free", 0o777)):
            (folder / name).mkdir()
            for file, mode in (("writable", 0o666), ("protected", 0o444)):
                (folder / name / file).write_bytes(b"old")
                (folder / name / file).chmod(mode)
            (folder / name).chmod(bits)
        names = ["locked/new", "locked/protected", "locked/writable", "free/protected", "free/writable"]
        ran = subprocess.run(
            [sys.executable, "-c", AS_SOMEBODY, *(f"{made}/{name}" for name in names)],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        assert ran.returncode == 0, ran.stderr
        lines = ran.stdout.splitlines()
        assert [line[:8] for line in lines] == ["[TO407] ", "[TO407] ", "written", "[TO407] ", "written"]
        assert all("Permission denied" in line for line in lines if line != "written")
        assert [(folder / name).read_bytes() for name in names[1:]] == [b"old", b"new", b"old", b"new"]
        (folder / "locked").chmod(0o755)
        assert len([path for path in folder.rglob("*") if path.is_file()]) == 4
