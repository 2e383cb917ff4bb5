"""Check every link, picture, and anchor within the built site, and list the links to other sites."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class PageLinks(HTMLParser):
    """The targets that a page links to or shows, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        """Read the text of a page."""
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes of a tag that name a target or an anchor."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.targets |= {values[name] for name in ("href", "src") if name in values and tag != "base"}


def broken_links(site: Path) -> tuple[list[str], set[str], int]:
    """Return the broken links within the site, the links to other sites, and the number of links within the site.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> links = '<a href="b.html">b</a> <a href="#c">c</a> <a id="d" href="#d">d</a>'
    >>> _ = (folder / "a.html").write_text(links, encoding="utf-8")
    >>> broken_links(folder)
    (['a.html: #c', 'a.html: b.html'], set(), 3)
    """
    site = site.resolve()
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # templates of the theme
    pages = {path: PageLinks(path.read_text(encoding="utf-8")) for path in files}
    broken: list[str] = []
    external: set[str] = set()
    count = 0
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                external |= {target} if parts.scheme in {"http", "https", ""} else set()
                continue
            count += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            exists = (not anchor or anchor in pages[file].anchors) if file in pages else file.exists()
            if not exists:
                broken.append(f"{path.relative_to(site).as_posix()}: {target}")
    return broken, external, count


if __name__ == "__main__":
    broken, external, count = broken_links(Path(sys.argv[1]))
    print("\n".join(sorted(external)))
    print(f"{count:,} links within the site, {len(broken)} broken; {len(external)} links to other sites, listed above.")
    print("\n".join(broken))
    sys.exit(bool(broken))
