"""One page per code of an error or a note, made from the tables of docs/codes.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .markdown_tables import read_tables, relocate_links

PAGE = "codes.md"
CODE = re.compile(r"\bT[ON]\d{3}\b")
SUFFIX = ".myst"  # generated pages; the committed ones end in .md
MAX_TITLE = 90


@dataclass(frozen=True)
class Code:
    """A row of the tables of codes."""

    code: str  # such as TO102
    group: str  # heading above the table, such as "TO1xx: data"
    problem: str  # what is wrong, or the fact that a note states
    remedy: str
    used_by: tuple[str, ...]  # parts of the package

    @property
    def is_error(self) -> bool:
        """Whether it is the code of an error, not of a note."""
        return self.code.startswith("TO")

    @property
    def topic(self) -> str:
        """What the codes of the group are about."""
        return self.group.partition(": ")[2]


def read_codes(docs: Path) -> list[Code]:
    """Return all codes in the order of the page."""
    return [
        Code(row[0], table.heading, row[1], row[2], tuple(row[3].split(", ")))
        for table in read_tables(docs, PAGE)
        for row in table.rows
        if CODE.fullmatch(row[0])
    ]


def title_of(code: Code) -> str:
    """Return the code with the beginning of its text, as a heading without markup."""
    sentence = re.split(r"(?<=[.;:]) ", code.problem)[0].rstrip(".;:")
    if len(sentence) > MAX_TITLE:
        sentence = sentence[:MAX_TITLE].rsplit(" ", 1)[0].rstrip(",") + " …"
    if sentence.count("`") % 2:
        sentence = sentence.replace("`", "")
    return f"{code.code}: {sentence}"


def mentions(docs: Path) -> dict[str, list[tuple[str, str]]]:
    """Map each code to the pages, with their titles, that mention it outside of the page of codes."""
    pages: dict[str, list[tuple[str, str]]] = {}
    for file in [*sorted(docs.glob("*.md")), *sorted(docs.glob("studies/*.md")), *sorted(docs.glob("how_to/*.md"))]:
        text = file.read_text(encoding="utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        if file.name != PAGE and title:
            for code in set(CODE.findall(text)):
                pages.setdefault(code, []).append((file.relative_to(docs).as_posix(), title[1]))
    return pages


def code_page(code: Code, siblings: list[Code], pages: list[tuple[str, str]], methods: list[str]) -> str:
    """Return the page of a code in Markdown; `methods` are links to methods whose docstring mentions it."""
    if code.is_error:
        about = (
            f"`{code.code}` is the code of an error about {code.topic}. In Python it is an `InputError`, a subclass of "
            f"`ValueError`, whose attribute `code` is `{code.code!r}`. The command line prints the message and exits "
            "with status 2."
        )
        headings = "Problem", "Remedy"
    else:
        about = (
            f"`{code.code}` is the code of a note {code.topic}. A note is a fact that is not an error. It is in "
            "`.notes` of the result, with the numbers of that result, and in the JSON output."
        )
        headings = "Fact", "What to do"
    if code.code == "TO699":
        about = "`TO699` is the code of an internal error. The command line prints it; there is no result."
    used_by = ", ".join(f"`{part}`" if part != "anywhere" else "all parts" for part in code.used_by)
    remedy = relocate_links(code.remedy, PAGE, "codes")
    problem = relocate_links(code.problem, PAGE, "codes")
    blocks = [f"# {title_of(code)}", about, f"## {headings[0]}", problem, f"## {headings[1]}", remedy]
    blocks += ["## Where it is used", f"Parts of the package that use it: {used_by}."]
    links = [f"[{title}](../{page})" for page, title in pages] + methods
    if links:
        blocks.append(f"Pages that mention it: {', '.join(links)}.")
    others = [f"- [{title_of(other)}]({other.code}{SUFFIX})" for other in siblings if other is not code]
    blocks += [f"## Other codes: {code.group}", "\n".join(others), "All codes are on the page [Codes](../codes.md)."]
    return "\n\n".join(blocks) + "\n"


def code_pages(docs: Path, methods: dict[str, list[str]] | None = None) -> dict[str, str]:
    """Map the path of each page, relative to the documentation, to its content.

    `methods` maps a code to links to the methods that mention it, relative to the folder of the pages.
    """
    codes = read_codes(docs)
    mentioned = mentions(docs)
    return {
        f"codes/{code.code}{SUFFIX}": code_page(
            code,
            [other for other in codes if other.group == code.group],
            mentioned.get(code.code, []),
            (methods or {}).get(code.code, []),
        )
        for code in codes
    }
