"""Does the script that publishes the documentation add each version, and keep those that others publish meanwhile?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ADDRESS = "https://example.org/docs"
IDENTITY = {f"GIT_{role}_{part}": "docs@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    environment = os.environ | IDENTITY | {"RETRY_SECONDS": "0"}
    return subprocess.run(
        ["git", "-C", folder, *arguments], check=True, capture_output=True, text=True, env=environment, encoding="utf-8"
    ).stdout


class Repository:
    """A clone with the script, its origin, and built sites of one page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clone = folder, folder / "clone"
        git(folder, "init", "--quiet", "--bare", "origin")
        git(folder, "clone", "--quiet", "origin", "clone")
        for file in (".github/publish_docs.sh", "docs/_ext/trueodds_docs/versions.py"):
            (self.clone / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.clone / file)
        git(self.clone, "add", "--all")
        git(self.clone, "commit", "--quiet", "--message", "Begin")

    def publish(self, version: str, text: str) -> str:
        site = self.folder / "site"
        shutil.rmtree(site, ignore_errors=True)
        site.mkdir()
        (site / "index.html").write_text(text, encoding="utf-8")
        environment = os.environ | IDENTITY | {"RETRY_SECONDS": "0"}
        command = [self.clone / ".github/publish_docs.sh", version, site, ADDRESS]
        result = subprocess.run(
            command, cwd=self.clone, env=environment, capture_output=True, text=True, check=False, encoding="utf-8"
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def published(self, path: str) -> str:
        return git(self.folder / "origin", "show", f"gh-pages:{path}")

    def files(self) -> list[str]:
        return git(self.folder / "origin", "ls-tree", "-r", "--name-only", "gh-pages").split()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("bash") is None:
        pytest.skip("the script needs bash")
    return Repository(tmp_path)


@pytest.mark.slow
def test_each_version_has_its_folder_and_the_newest_release_is_stable(repository: Repository) -> None:
    repository.publish("dev", "first")
    assert repository.files() == [".nojekyll", "dev/index.html", "index.html", "switcher.json"]
    assert "url=dev/" in repository.published("index.html")
    for version in ("0.9.0", "0.10.0", "0.9.1"):
        repository.publish(version, version)
    repository.publish("dev", "second")
    assert repository.published("dev/index.html") == "second"
    assert repository.published("0.9.0/index.html") == "0.9.0"
    assert repository.published("stable/index.html") == "0.10.0"
    assert "url=stable/" in repository.published("index.html")
    entries = json.loads(repository.published("switcher.json"))
    assert [entry["version"] for entry in entries] == ["0.10.0", "0.9.1", "0.9.0", "dev"]
    assert entries[0]["url"] == f"{ADDRESS}/0.10.0/"
    assert [entry["preferred"] for entry in entries] == [True, False, False, False]
    assert "README.md" not in repository.files()
    assert ".github/publish_docs.sh" not in repository.files()


def test_the_same_site_is_not_published_twice(repository: Repository) -> None:
    repository.publish("dev", "text")
    commits = git(repository.folder / "origin", "rev-list", "--count", "gh-pages")
    assert "already published" in repository.publish("dev", "text")
    assert git(repository.folder / "origin", "rev-list", "--count", "gh-pages") == commits


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_a_version_that_is_published_meanwhile_is_kept(repository: Repository, is_first: bool) -> None:
    if not is_first:
        repository.publish("dev", "old")
    # The first push triggers the one of another run, which arrives before it.
    (repository.folder / "other").mkdir()
    other = Repository(repository.folder / "other")
    git(other.clone, "remote", "set-url", "origin", str(repository.folder / "origin"))
    site = repository.folder / "0.1.0"
    site.mkdir()
    (site / "index.html").write_text("0.1.0", encoding="utf-8")
    hook = repository.clone / ".git/hooks/pre-push"
    hook.write_text(
        f"#!/bin/sh\nunset $(git rev-parse --local-env-vars)\nrm {hook}\ncd {other.clone}\n"
        f".github/publish_docs.sh 0.1.0 {site} {ADDRESS}\n",
        encoding="utf-8",
    )
    hook.chmod(0o755)
    repository.publish("dev", "new")
    assert not hook.exists()
    assert repository.published("dev/index.html") == "new"
    assert repository.published("0.1.0/index.html") == "0.1.0"
    assert [entry["version"] for entry in json.loads(repository.published("switcher.json"))] == ["0.1.0", "dev"]
