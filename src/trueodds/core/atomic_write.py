"""Write files atomically: a file is replaced as a whole or not at all.

The old file remains until the new one is complete. A symbolic link remains a link: its target is replaced, and keeps
its mode and, if permitted, its owner. A new file gets the mode that `open` would give it.

A killed process leaves no temporary file behind: on Linux the file has no name before it is complete (`O_TMPFILE`), so
the kernel frees it. On file systems without unnamed files (NFS, older overlayfs), the temporary file has the same name
for every write to that path and is locked by its writer; the next write removes it if it is unlocked.

Devices, pipes and file descriptors (`/dev/stdout`) cannot be replaced: they are written in place once the content is
complete. So is a file that may be written but not replaced, such as a single file that is mounted into a container.
"""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import IO

from trueodds.core.errors import InputError

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]

_MAX_BUFFERED_BYTES = 2**26  # bytes buffered in memory for a device or a pipe; more are buffered in a temporary file
_NOT_REPLACEABLE_ERRORS = (errno.EBUSY, errno.EPERM, errno.EACCES, errno.EXDEV)
_REMEDIES = {
    errno.ENOENT: "Check the name of the folder, or create it.",
    errno.ENOTDIR: "Check the name of the folder.",
    errno.EISDIR: "Name a file in the folder.",
    errno.ELOOP: "Remove the symbolic link that leads to itself, or name another file.",
}
_UNNAMED_FILE_FLAG = getattr(os, "O_TMPFILE", 0)


@contextmanager
def open_atomic(path: str | os.PathLike[str], code: str) -> Iterator[IO[bytes]]:
    """Open a binary file for atomic writing: `path` is replaced when the block ends without an error, else unchanged.

    Raises InputError with this code if the file cannot be written.
    """
    name = os.path.expanduser(os.fsdecode(path))
    try:
        if "\0" in name:
            raise OSError(errno.EINVAL, "a path cannot contain NUL")
        if not os.path.basename(name):
            raise IsADirectoryError(errno.EISDIR, "a path that ends with a separator names a folder")
        with _open_for_writing(name) as file:
            yield file
    except InputError:
        raise
    except (OSError, UnicodeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        remedy = _REMEDIES.get(getattr(problem, "errno", None) or 0)
        fix = remedy or "Check the path, its permissions and the space left."
        raise InputError(code, "The file cannot be written.", f"{name}: {reason}", fix) from None


def check_writable(path: str | os.PathLike[str], code: str) -> None:
    """Raise InputError with this code unless `open_atomic` could write a file now; the file remains as it is.

    Permissions do not tell whether a file can be created, for instance on a read-only or a virtual file system or over
    a quota, so a temporary file is created and removed.
    """
    with suppress(_CheckPassed), open_atomic(path, code):
        raise _CheckPassed


class _CheckPassed(Exception):
    """Raised by `check_writable` to leave `open_atomic` before anything is replaced."""


def _open_for_writing(name: str) -> AbstractContextManager[IO[bytes]]:
    """Return a context manager that replaces the file, or writes in place what cannot be replaced."""
    descriptor = _descriptor_of_path(name)
    if descriptor is not None:
        return _write_in_place(lambda: _duplicate_descriptor(descriptor))
    try:
        old_stat = os.stat(name)
    except FileNotFoundError:
        return _write_replacement(os.path.realpath(name), None)
    if stat.S_ISDIR(old_stat.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    target = os.path.realpath(name)
    if stat.S_ISREG(old_stat.st_mode) and os.access(os.path.dirname(target), os.W_OK | os.X_OK):
        return _write_replacement(target, old_stat)
    return _write_in_place(lambda: open(name, "wb"))


def _descriptor_of_path(name: str) -> int | None:
    """Return the file descriptor of a path such as /dev/stdout, and None for all other paths."""
    descriptors = os.path.realpath("/dev/fd")
    for _ in range(40):  # maximum number of links that Linux follows
        folder, basename = os.path.split(name)
        folder = os.path.realpath(folder or ".")
        if folder == descriptors and basename.isascii() and basename.isdigit():
            return int(basename)
        try:
            name = os.path.join(folder, os.readlink(os.path.join(folder, basename)))
        except OSError:
            return None
    return None


def _duplicate_descriptor(descriptor: int) -> IO[bytes]:
    """Return the same open file, positioned where the last write ended."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return os.fdopen(os.dup(descriptor), "wb")


@contextmanager
def _write_in_place(open_target: Callable[[], IO[bytes]]) -> Iterator[IO[bytes]]:
    """Buffer the content, and write it to the file when the block ends without an error."""
    with tempfile.SpooledTemporaryFile(_MAX_BUFFERED_BYTES) as buffer:
        yield buffer
        buffer.seek(0)
        with open_target() as file:
            shutil.copyfileobj(buffer, file)


@contextmanager
def _write_replacement(target: str, old_stat: os.stat_result | None) -> Iterator[IO[bytes]]:
    """Write a temporary file, and give it the name of the target when the block ends without an error."""
    descriptor, temporary_path = _create_temporary(
        target, 0o666 if old_stat is None else stat.S_IMODE(old_stat.st_mode) & 0o777
    )
    removal = partial(_remove_file, temporary_path)
    atexit.register(removal)  # for a second signal, which ends the process immediately
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            _keep_mode(descriptor, old_stat)
            if temporary_path is not None:
                os.fsync(descriptor)  # a network file system may report a full disk only here
            elif old_stat is None and _link_unnamed_file(descriptor, target):
                return
            else:
                temporary_path = _random_temporary_path(target)
                _link_unnamed_file(descriptor, temporary_path)
            _rename_or_copy(file, temporary_path, target, old_stat)
    except BaseException:
        _remove_file(temporary_path)
        raise
    finally:
        atexit.unregister(removal)


def _create_temporary(target: str, mode: int) -> tuple[int, str | None]:
    """Create a file in the folder of the target; return its descriptor and its name, None for an unnamed file."""
    if _UNNAMED_FILE_FLAG:
        with suppress(OSError):  # not supported by every file system
            descriptor = os.open(os.path.dirname(target), _UNNAMED_FILE_FLAG | os.O_RDWR, mode)
            if os.path.exists(_proc_path(descriptor)):
                return descriptor, None
            os.close(descriptor)
    name = f".trueodds-{sha256(os.fsencode(os.path.basename(target))).hexdigest()[:16]}.part"
    temporary_path = os.path.join(os.path.dirname(target), name)
    while True:
        try:
            descriptor = os.open(temporary_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except FileExistsError:
            temporary_path = temporary_path if _remove_if_abandoned(temporary_path) else _random_temporary_path(target)
            continue
        if _lock_file(descriptor, temporary_path, wait=True):
            return descriptor, temporary_path
        os.close(descriptor)


def _remove_if_abandoned(temporary_path: str) -> bool:
    """Remove the file if no process writes to it any more; return whether the name is free."""
    try:
        descriptor = os.open(temporary_path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return not os.path.lexists(temporary_path)
    try:
        is_free = fcntl is not None and _lock_file(descriptor, temporary_path, wait=False)
        if is_free:
            os.unlink(temporary_path)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return is_free


def _lock_file(descriptor: int, temporary_path: str, *, wait: bool) -> bool:
    """Lock an open file until it is closed; False if another process has the lock or the name was reused.

    On systems without locks, files are written without locking, and none is considered abandoned.
    """
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            return wait
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), os.stat(temporary_path, follow_symlinks=False))
    return False


def _keep_mode(descriptor: int, old_stat: os.stat_result | None) -> None:
    """Restore mode and owner of the replaced file, as far as this user may set them."""
    if old_stat is None or not hasattr(os, "fchmod"):
        return
    for owner in (old_stat.st_uid, -1):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, old_stat.st_gid)
            break
    os.fchmod(descriptor, stat.S_IMODE(old_stat.st_mode))


def _rename_or_copy(file: IO[bytes], temporary_path: str, target: str, old_stat: os.stat_result | None) -> None:
    """Rename the temporary file to the target, or copy its content where only that is permitted."""
    if fcntl is None:
        file.close()  # systems without fcntl cannot rename an open file
    try:
        os.replace(temporary_path, target)
    except OSError as problem:
        if old_stat is None or file.closed or problem.errno not in _NOT_REPLACEABLE_ERRORS:
            raise
        file.seek(0)
        with open(target, "wb") as existing:
            shutil.copyfileobj(file, existing)
        os.unlink(temporary_path)


def _link_unnamed_file(descriptor: int, name: str) -> bool:
    """Give an unnamed file its name, unless another one has it."""
    try:
        # With src_dir_fd, even for an absolute path, Python follows the link to the open file.
        os.link(_proc_path(descriptor), name, src_dir_fd=descriptor)
    except FileExistsError:
        return False
    return True


def _proc_path(descriptor: int) -> str:
    """Return the path by which Linux refers to an open file."""
    return f"/proc/self/fd/{descriptor}"


def _random_temporary_path(target: str) -> str:
    """Return an unused path of a temporary file in the folder of the target."""
    return os.path.join(os.path.dirname(target), f".trueodds-{os.urandom(8).hex()}.part")


def _remove_file(path: str | None) -> None:
    """Remove a file if it exists; None stands for a file without a name."""
    if path is not None:
        with suppress(OSError):
            os.unlink(path)
