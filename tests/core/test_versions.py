"""Are the versions those of the imported packages, and the commit that of the clone, as git names it?"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy
import sklearn

from trueodds.core.versions import commit_of_clone, program_versions

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = COMMIT[::-1]


def test_the_versions_are_those_of_the_imported_packages() -> None:
    versions = program_versions()
    imported = {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "scikit-learn": sklearn.__version__,
    }
    assert versions | imported == versions


def clone(folder: Path, head: str) -> Path:
    """A folder with the files that commit_of_clone reads; the package within it."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head + "\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('name = "trueodds"\n', encoding="utf-8")
    return folder / "src" / "trueodds"


def test_a_branch_is_a_file_or_a_line_of_the_packed_references(tmp_path: Path) -> None:
    package = clone(tmp_path, "ref: refs/heads/main")
    lines = f"# pack-refs with: peeled\n{OTHER} refs/heads/main-2\n{COMMIT} refs/heads/main\n"
    (tmp_path / ".git" / "packed-refs").write_text(lines, encoding="utf-8")
    assert commit_of_clone(package) == COMMIT
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text(OTHER + "\n", encoding="utf-8")
    assert commit_of_clone(package) == OTHER  # git writes newer commits there


def test_a_commit_without_a_branch_is_the_head(tmp_path: Path) -> None:
    assert commit_of_clone(clone(tmp_path, COMMIT)) == COMMIT


def test_an_installed_package_and_a_branch_without_commits_have_no_commit(tmp_path: Path) -> None:
    assert commit_of_clone(tmp_path / "site-packages" / "trueodds") is None
    assert commit_of_clone(clone(tmp_path / "new", "ref: refs/heads/main")) is None
    package = clone(tmp_path / "of another project", COMMIT)
    (package.parents[1] / "pyproject.toml").write_text('name = "other"\n', encoding="utf-8")
    assert commit_of_clone(package) is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_clone_and_its_second_working_tree_have_the_commits_that_git_names(tmp_path: Path) -> None:
    def git(*words: str, folder: Path) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        ran = subprocess.run(
            ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True, encoding="utf-8"
        )
        return ran.stdout.strip()

    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "pyproject.toml").write_text('name = "trueodds"\n', encoding="utf-8")
    git("init", "-q", folder=first)
    git("add", ".", folder=first)
    git("commit", "-q", "-m", "Begin", folder=first)
    git("worktree", "add", "-q", "-b", "topic", str(second), folder=first)
    git("commit", "-q", "--allow-empty", "-m", "Go on", folder=second)
    commits = [commit_of_clone(folder / "src" / "trueodds") for folder in (first, second)]
    assert commits == [git("rev-parse", "HEAD", folder=folder) for folder in (first, second)]
    assert commits[0] != commits[1]
