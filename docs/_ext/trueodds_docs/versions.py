"""The list of published versions that the site offers, the copy of the stable one, and the page that leads to it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

STABLE = "stable"  # folder with a copy of the newest release, so that links to it stay valid
RELEASE = re.compile(r"\d+(\.\d+)+")
REDIRECT = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>trueodds</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">Documentation of trueodds</a>
</html>
"""


def sort_versions(folders: Iterable[str]) -> list[str]:
    """Return the releases among the names of folders, the newest first, and then `dev` if there is one.

    >>> sort_versions(["dev", "0.9.0", ".git", "0.10.0"])
    ['0.10.0', '0.9.0', 'dev']
    """
    names = list(folders)
    releases = [name for name in names if RELEASE.fullmatch(name)]
    releases.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    return releases + ["dev"] * ("dev" in names)


def switcher_entries(folders: Iterable[str], address: str) -> list[dict[str, str | bool]]:
    """Return the entries of switcher.json. The newest release is the stable version; without releases it is `dev`.

    >>> switcher_entries(["dev"], "https://example.org/docs")
    [{'name': 'dev', 'version': 'dev', 'url': 'https://example.org/docs/dev/', 'preferred': True}]
    """
    return [
        {
            "name": f"{version} (stable)" if number == 0 and version != "dev" else version,
            "version": version,
            "url": f"{address.rstrip('/')}/{version}/",
            "preferred": number == 0,
        }
        for number, version in enumerate(sort_versions(folders))
    ]


def write_versions(site: Path, address: str) -> None:
    """Write switcher.json, index.html, and the folder `stable` into a folder that has one folder per version."""
    entries = switcher_entries((folder.name for folder in site.iterdir() if folder.is_dir()), address)
    (site / "switcher.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    (site / ".nojekyll").touch()
    if not entries:
        return
    newest = str(entries[0]["version"])
    shutil.rmtree(site / STABLE, ignore_errors=True)
    if newest != "dev":
        shutil.copytree(site / newest, site / STABLE)
    first = "dev" if newest == "dev" else STABLE
    (site / "index.html").write_text(REDIRECT.format(version=first), encoding="utf-8")


if __name__ == "__main__":
    write_versions(Path(sys.argv[1]), sys.argv[2])
