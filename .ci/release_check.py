"""Rehearse a release: build it twice from a clean checkout, and use it where the source tree is not.

python .ci/release_check.py [--only STEP ...] [--python 3.11 ...] [--out build/release] [--archives build/release/dist]

| step | what must hold |
|---|---|
| build | the source archive, the pure wheel, and a compiled wheel per Python have the same bytes when built again |
| contents | `twine check` passes; the archives hold the tracked files, and what `.ci/contents.txt` requires |
| install | each wheel works in an empty environment: first calls, the README, `trueodds selftest`, one audit by all |
| install | so do the first calls of the source archive |
| bare | so do the first calls of the pure wheel without any extra |
| oldest | the pure wheel works with the oldest versions of all dependencies that pyproject.toml allows |

`oldest` uses the first version of --python. A version that is not installed, or has no wheel, is NOT CHECKED, which
fails at the end unless --allow-unchecked is given; so does a compiled wheel whose first calls take too long. Each step
can run alone: it reads the archives that `build` left in the folder --archives. Needs git, a package index, and nothing
else.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from readme import FOREIGN, script, steps

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("build", "contents", "install", "bare", "oldest")
KINDS = ("pure", "compiled", "sdist")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "[files,report]"  # those that the README installs
TOOLS = ("build", "twine", "uv", "wheel")
LIMITS = {"measure": 1.5, "audit": 4.0}  # CPU seconds of the first calls of a compiled wheel, which compiles nothing

FIRST_MEASURE = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
p = rng.random(1000)
preds = to.Predictions((rng.random(1000) < p).astype(int), p)
print(to.measure(preds, "ece"))
"""
FIRST_AUDIT = """
import numpy as np
import trueodds as to
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(10), 900)
preds = to.Predictions((P.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1), P)
audit = to.audit(preds)
"""
KEEP_AUDIT = """
import json, pathlib
pathlib.Path("audit.json").write_text(json.dumps(audit.to_dict()), encoding="utf-8")
"""
# What works without any extra: each verb once, a saved tally and calibrator, and the command line on a text file.
SMOKE = """
import pathlib, tempfile
import numpy as np
import trueodds as to
assert "site-packages" in to.__file__, to.__file__
rng = np.random.default_rng(1)
P = rng.dirichlet(np.ones(3), 600)
y = (P.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
preds = to.Predictions(y, P)
assert 0 < to.measure(preds, "ece").value < 0.2
assert to.test(preds).pvalue > 0.001
assert np.isclose(to.measure(to.tally(preds), "brier").value, to.measure(preds, "brier").value, rtol=1e-12)
folder = pathlib.Path(tempfile.mkdtemp())
fitted = to.fit(preds, "temperature")
fitted.save(folder / "map.json")
assert np.allclose(to.load(folder / "map.json").predict_proba(P), fitted.predict_proba(P))
lines = ["label,p_a,p_b,p_c"] + [f"{'abc'[k]},{a!r},{b!r},{c!r}" for k, (a, b, c) in zip(y, P.tolist())]
(folder / "rows.csv").write_text("\\n".join(lines), encoding="utf-8")
assert np.isclose(to.measure(to.read(folder / "rows.csv"), "ece").value, to.measure(preds, "ece").value, rtol=1e-12)
"""


class Release:
    """The checkout, the archives, and the environments of one rehearsal, all in one folder."""

    def __init__(self, folder: Path, pythons: Sequence[str], archives: Path | None = None) -> None:
        self.folder, self.dist, self.checkout = folder, archives or folder / "dist", folder / "checkout"
        self.pythons = {version: path for version in pythons if (path := find_python(version))}
        say("Python: " + ", ".join(self.pythons))
        self.not_checked = {f"Python {v}, which is not installed": None for v in pythons if v not in self.pythons}
        self.too_slow: list[str] = []
        if not self.pythons:
            raise SystemExit(f"release: none of the versions {', '.join(pythons)} of Python is installed")
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        self.environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1", "PYTHONUTF8": "1"}
        commit_time = self.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"]).stdout.strip()
        self.environment["SOURCE_DATE_EPOCH"] = commit_time
        self.tools = scripts(folder / "tools")
        if not (self.tools / "twine").exists():
            subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
            self.run([self.tools / "python", "-m", "pip", "install", "--quiet", *TOOLS])
        shutil.rmtree(self.checkout, ignore_errors=True)
        self.run(["git", "clone", "--quiet", ROOT, self.checkout])

    def run(self, command: Sequence[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command without the settings of the caller, and show its output if it fails."""
        done = subprocess.run(
            [str(part) for part in command],
            **{"env": self.environment, "capture_output": True, "text": True, "encoding": "utf-8"} | options,
        )
        if done.returncode:
            raise SystemExit(f"release: failed: {shlex.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
        return done

    def make_environment(self, name: str, python: str, *requirements: str | Path) -> Path:
        """An empty environment with these requirements; the folder of its commands."""
        place = self.folder / "environments" / name
        shutil.rmtree(place, ignore_errors=True)
        self.run([self.tools / "uv", "venv", "--quiet", "--python", python, place])
        # Bytecode is compiled at the installation, as by pip, and not in the first call.
        install = ["pip", "install", "--quiet", "--compile-bytecode", "--python", place]
        self.run([self.tools / "uv", *install, *requirements])
        return scripts(place)

    # Steps

    def build(self) -> None:
        """Build everything twice, in different folders at different times, and compare the bytes."""
        shutil.rmtree(self.dist, ignore_errors=True)
        for folder in (self.dist, self.folder / "again"):
            shutil.rmtree(folder, ignore_errors=True)
            self.run([self.tools / "python", "-m", "build", "--outdir", folder, self.checkout])
            for version, python in self.pythons.items():
                requirements = (f"{self.checkout}[report]", "wheel", "pip")
                bin = self.make_environment(f"build-{version}", python, *requirements)
                self.run([bin / "python", self.checkout / ".ci" / "compiled_wheel.py", folder])
        different = []
        for path in sorted(self.dist.iterdir()):
            again = self.folder / "again" / path.name
            say(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}  {path.stat().st_size:,} bytes")
            if path.read_bytes() != again.read_bytes():
                ours, theirs = members(path), members(again)
                names = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
                different.append(f"{path.name}: {len(names)} of {len(ours)} files differ: {names[:5]}")
        if different:
            raise SystemExit("release: another build has other bytes:\n" + "\n".join(different))

    def contents(self) -> None:
        """Compare the archives with the tracked files and with the stored list."""
        archives = self.archives("*")
        say(self.run([self.tools / "twine", "check", "--strict", *archives]).stdout.strip())
        tracked = self.run(["git", "-C", self.checkout, "ls-files"]).stdout.splitlines()
        package = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
        problems = []
        for archive in archives:
            kind = "sdist" if archive.suffix == ".gz" else "pure" if archive.name.endswith("-any.whl") else "compiled"
            names = set(members(archive))
            if kind == "sdist":
                names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in names}
                wrong = names - set(tracked) - {"PKG-INFO"}
            else:
                inside = {name for name in names if name.startswith("trueodds/")}
                wrong = inside ^ package
                if kind == "compiled":
                    wrong = {name for name in wrong if not name.startswith("trueodds/kernels/precompiled/")}
            problems += [f"{archive.name}: {name} is not as in the repository" for name in sorted(wrong)[:10]]
            for has, pattern in rules(kind):
                if bool(fnmatch.filter(names, pattern)) != has:
                    problems.append(f"{archive.name}: {pattern} is {'missing' if has else 'not allowed'}")
            say(f"{kind}: {len(names)} files")
        if problems:
            raise SystemExit("release: " + "\n".join(problems))

    def install(self) -> None:
        """Use each archive with the newest versions of its dependencies."""
        unused = set(self.archives("*"))
        for version, python in self.pythons.items():
            patterns = {"pure": "*-any.whl", "compiled": f"*-cp{version.replace('.', '')}-*.whl"}
            audits = []
            for kind, pattern in patterns.items():
                for archive in self.archives(pattern, is_required=False):
                    unused.discard(archive)
                    bin = self.make_environment(f"{kind}-{version}", python, with_extras(archive))
                    audits.append(self.use(bin, f"{kind} {version}", is_compiled=kind == "compiled", has_extras=True))
            if found := [place for audit in audits[1:] for place in differences(audits[0], audit)]:
                raise SystemExit(f"release: the wheels for {version} compute different audits: {found[:5]}")
        python = next(iter(self.pythons.values()))
        for source in self.archives("*.tar.gz", is_required=False):
            unused.discard(source)
            self.use(self.make_environment("sdist", python, source), "sdist")
        if unused:
            raise SystemExit(f"release: no Python used {', '.join(sorted(path.name for path in unused))}")

    def bare(self) -> None:
        """Use the pure wheel without any extra."""
        for version, python in self.pythons.items():
            bin = self.make_environment(f"bare-{version}", python, *self.archives("*-any.whl"))
            self.use(bin, f"bare {version}")

    def oldest(self) -> None:
        """Use the pure wheel with the oldest versions of what pyproject.toml names."""
        wheel = self.archives("*-any.whl")[0]
        # `lowest` would also take the oldest versions of what the dependencies bring, of which users get newer ones.
        version, python = next(iter(self.pythons.items()))
        bin = self.make_environment(f"oldest-{version}", python, "--resolution", "lowest-direct", *self.direct(wheel))
        say(", ".join(self.run([self.tools / "uv", "pip", "freeze", "--python", bin.parent]).stdout.split()))
        self.use(bin, f"oldest {version}", has_extras=True)

    def archives(self, pattern: str, *, is_required: bool = True) -> list[Path]:
        """The archives with such a name. One that is missing is a failure, or is noted as not checked."""
        found = sorted(self.dist.glob(pattern))
        if not found and is_required:
            raise SystemExit(f"release: {self.dist} has no archive {pattern}")
        if not found:
            self.not_checked[f"{pattern}, which is not in {self.dist}"] = None
        return found

    def direct(self, wheel: Path) -> list[str]:
        """The wheel, and its requirements as direct ones, which are those that `lowest-direct` makes old."""
        metadata = members(wheel)[f"{'-'.join(wheel.name.split('-')[:2])}.dist-info/METADATA"].decode()
        required = [
            line.removeprefix("Requires-Dist: ") for line in metadata.splitlines() if line.startswith("Requires-Dist")
        ]
        extras = {f"extra == '{name}'" for name in EXTRAS.strip("[]").split(",")}
        parts = [(name.strip(), marker.strip()) for name, _, marker in (line.partition(";") for line in required)]
        return [with_extras(wheel), *(name for name, marker in parts if not marker or marker in extras)]

    def use(self, bin: Path, title: str, *, is_compiled: bool = False, has_extras: bool = False) -> object:
        """First calls, smoke test, README, and selftest, in a folder without the source tree; the first audit."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{bin}{os.pathsep}{self.environment['PATH']}"
            options = {"cwd": folder, "env": self.environment | {"PATH": path, "NUMBA_CACHE_DIR": f"{folder}/cache"}}
            cost = {}
            page = "audit.to_html('page.html')\n" if has_extras else ""
            for name, code in {"measure": FIRST_MEASURE, "audit": FIRST_AUDIT + page + KEEP_AUDIT}.items():
                shutil.rmtree(Path(folder, "cache"), ignore_errors=True)
                cost[name] = cpu_seconds(lambda code=code: self.run([bin / "python", "-c", code], **options))
            say(f"{title}: first measure {cost['measure']:.2f} CPU-s, first audit {cost['audit']:.2f} CPU-s")
            if is_compiled and any(cost[name] > limit for name, limit in LIMITS.items()):
                self.too_slow.append(f"the first calls of {title}; the limits are {LIMITS} CPU-s")
            self.run([bin / "python", "-c", SMOKE], **options)
            self.run([bin / "trueodds", "measure", "--help"], **options)
            say(self.run([bin / "trueodds", "--version"], **options).stdout.strip())
            if has_extras:
                Path(folder, "demo").mkdir()
                shutil.copy(self.checkout / "demo" / "digits.py", Path(folder, "demo"))
                self.run([bin / "python", "demo/digits.py"], **options)
                self.run(["bash", "-c", script(installed_steps(self.checkout / "README.md"))], **options)
                say(self.run([bin / "trueodds", "selftest", "--out", "selftest"], **options).stdout[-300:].strip())
            say(f"{title}: passed")
            return json.loads(Path(folder, "audit.json").read_text(encoding="utf-8"))


def differences(ours: object, theirs: object, place: str = "audit") -> Iterator[str]:
    """Places where two results differ by more than the rounding of two processors' code."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        for key, value in ours.items():
            yield from differences(value, theirs[key], f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{place}[{i}]")
    elif isinstance(ours, float) and isinstance(theirs, float):
        if not (math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(ours) and math.isnan(theirs))):
            yield f"{place}: {ours!r}, {theirs!r}"
    elif ours != theirs:
        yield f"{place}: {ours!r:.60}, {theirs!r:.60}"


def with_extras(archive: Path) -> str:
    return f"trueodds{EXTRAS} @ {archive.as_uri()}"


def installed_steps(page: Path) -> list[str]:
    """The README's commands for someone who installed the package, and has no clone."""
    return [step for step in steps(page.read_text(encoding="utf-8")) if step.startswith(("python -c", "trueodds "))]


def rules(kind: str, text: str | None = None) -> list[tuple[bool, str]]:
    """Lines of the stored list for one kind of archive: whether the pattern must be there, or must not."""
    if text is None:
        text = (ROOT / ".ci" / "contents.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in lines:
        if len(line) != 3 or line[1] not in {"has", "not"} or not {*line[0].split(",")} <= {*KINDS}:
            raise SystemExit(f"release: contents.txt: {' '.join(line)!r} is not kinds, `has` or `not`, and a pattern")
    return [(rule == "has", pattern) for kinds, rule, pattern in lines if kind in kinds.split(",")]


def members(archive: Path) -> dict[str, bytes]:
    """The files of an archive by name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as source:
        return {item.name: file.read() for item in source if (file := source.extractfile(item))}


def find_python(version: str) -> Path | None:
    """An interpreter of this version with `venv`, on the path or of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    for path in [shutil.which(f"python{version}"), sys.executable, *installed]:
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        found = path and subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if found and found.stdout.strip() == version:
            return Path(path)
    return None


def scripts(environment: Path) -> Path:
    """The folder of an environment's commands."""
    return environment / ("Scripts" if os.name == "nt" else "bin")


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of the processes that this call starts."""
    before = os.times()
    work()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def say(*lines: str) -> None:
    sys.stdout.writelines(f"release: {line}\n" for line in lines)
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS, metavar="STEP")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--archives", type=Path, help="folder of the archives (default: dist in the folder --out)")
    parser.add_argument("--allow-unchecked", action="store_true", help="do not fail for what could not be checked")
    arguments = parser.parse_args()
    if arguments.archives and "build" in arguments.only:
        parser.error("--archives names archives that exist, which the step build would replace: leave one of them out")
    if hasattr(sys.stdout, "reconfigure"):  # a pipe on Windows has another encoding than the children write
        sys.stdout.reconfigure(encoding="utf-8")
    release = Release(arguments.out.resolve(), arguments.python, arguments.archives and arguments.archives.resolve())
    for step in arguments.only:
        start = time.monotonic()
        getattr(release, step)()
        say(f"{step}: passed in {time.monotonic() - start:.0f} s")
    say(*(f"NOT CHECKED: {what}" for what in release.not_checked), *(f"TOO SLOW: {what}" for what in release.too_slow))
    return 1 if release.too_slow or (release.not_checked and not arguments.allow_unchecked) else 0


if __name__ == "__main__":
    sys.exit(main())
