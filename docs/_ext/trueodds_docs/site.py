"""The Sphinx extension of this documentation: generated pages, links, formulas, and the names of two documents."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from sphinx.ext.autodoc.mock import mock
from sphinx.project import Project

from .accessibility import correct_site
from .code_pages import SUFFIX, code_pages, read_codes
from .docstrings import escape_for_autodoc, shorten_citations, show_settings, skip_foreign_member
from .index_entries import index_entries
from .links import AddIndexEntries, LinkCodes, names_of_settings, pages_by_name, resolve_name
from .mathml import setup_mathml
from .method_pages import FAMILIES, list_methods, method_pages, methods_by_code
from .pictures import draw_pictures
from .public_pages import public_pages

# Documents that have another name on the site than as a file: the landing page is the index, and the user guide,
# docs/index.md, is the page "guide". Two are outside of the folder of the documentation.
RENAMED = {
    "site.md": "index",
    "index.md": "guide",
    "../CONTRIBUTING.md": "contributing",
    "../CHANGELOG.md": "changelog",
}
# Pages to which the site adds a list of the pages below them, which the Git host does not need.
CHAPTERS = {
    "guide": (
        "estimators", "tests", "calibrators", "fixes", "diagrams", "gallery", "tables", "groups", "answers", "people",
        "pixels", "torch", "engines", "level", "evidence", "speed", "scaling", "compatibility", "contributing",
        "how_it_works", "plan", "changelog",
    ),
    "studies": ("studies/*",),
    "codes": ("codes/*",),
    "how_to/index": ("how_to/*",),
    "coming_from/index": ("coming_from/*",),
}  # fmt: skip
NAVIGATION = (
    "tutorial", "how_to/index", "choose", "guide", "reference/index", "auto_examples/index", "studies",
    "coming_from/index", "papers", "where_we_lose", "glossary",
)  # fmt: skip


class SiteProject(Project):
    """The documents of the site; those of RENAMED are named differently from their files."""

    def discover(self, *args: Any, **kwargs: Any) -> set[str]:
        """Find all documents, and rename those of RENAMED."""
        super().discover(*args, **kwargs)
        self._path_to_docname |= {Path(file): docname for file, docname in RENAMED.items()}
        self._docname_to_path = {docname: path for path, docname in self._path_to_docname.items()}
        self.docnames = set(self._docname_to_path)
        return self.docnames

    def path2doc(self, filename: Any) -> str | None:
        """Return the document of a file, whose path may be absolute."""
        path = os.path.relpath(Path(self.srcdir) / filename, self.srcdir)
        return RENAMED.get(path) or super().path2doc(filename)


def use_site_names(app: Any) -> None:
    """Replace the project of Sphinx before it looks for documents."""
    project = SiteProject(app.srcdir, app.config.source_suffix)
    project.restore(app.project)
    app.project = app.env.project = project


def write_pages(app: Any) -> None:
    """Write all generated pages; a page that would not change keeps its time of modification."""
    docs = Path(app.srcdir)
    with mock(app.config.autodoc_mock_imports):
        pages = code_pages(docs, methods_by_code()) | method_pages(docs) | public_pages(docs)
    for path, content in pages.items():
        file = docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != content:
            file.write_text(content, encoding="utf-8")
    for folder in {(docs / path).parent for path in pages}:
        for file in folder.glob(f"*{SUFFIX}"):
            if file.relative_to(docs).as_posix() not in pages:
                file.unlink()
    (diagrams,) = (family for family in FAMILIES if family.name == "diagrams")
    draw_pictures(docs, diagrams.names())
    app.trueodds_codes = {code.code for code in read_codes(docs)}
    app.trueodds_pages = pages_by_name(docs)
    app.trueodds_settings = names_of_settings()
    app.trueodds_index = index_entries()


def add_toctrees(app: Any, docname: str, source: list[str]) -> None:
    """Add the list of pages below a chapter to its source; Sphinx warns of a page that does not exist."""
    names = NAVIGATION if docname == "index" else CHAPTERS.get(docname, ())
    if names and "{toctree}" not in source[0]:
        lines = "\n".join(names if docname == "index" else (f"/{name}" for name in names))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:titlesonly:\n\n{lines}\n```\n"


def add_methods(app: Any, docname: str, source: list[str]) -> None:
    """Add the lists of all methods to the first page of the reference."""
    if docname == "reference/index":
        source[0] += f"\n{list_methods()}"


def copy_schemas(app: Any, exception: Exception | None) -> None:
    """Copy the JSON schemas of the package to a folder of the site."""
    if exception is None and app.builder.format == "html":
        schemas = Path(app.srcdir).parent / "src" / "trueodds" / "schema"
        shutil.copytree(schemas, Path(app.outdir) / "schema", dirs_exist_ok=True)


CODE_BLOCK = re.compile(r"^(```\w+\n(?:(?!```).*\n)*?)\n+(```)$", re.MULTILINE)


def trim_code_blocks(app: Any, docname: str, source: list[str]) -> None:
    """Remove empty lines at the end of blocks of code, which the tests need after what an example prints."""
    source[0] = CODE_BLOCK.sub(r"\1\2", source[0])


def setup(app: Any) -> dict[str, Any]:
    """Register everything with Sphinx."""
    setup_mathml(app)
    app.add_transform(LinkCodes)
    app.add_transform(AddIndexEntries)
    app.connect("builder-inited", use_site_names, priority=1)
    app.connect("builder-inited", write_pages, priority=900)
    app.connect("source-read", add_toctrees)
    app.connect("source-read", add_methods)
    app.connect("source-read", trim_code_blocks)
    app.connect("build-finished", copy_schemas)
    app.connect("autodoc-process-docstring", escape_for_autodoc, priority=900)
    app.connect("autodoc-process-signature", show_settings)
    app.connect("autodoc-skip-member", skip_foreign_member)
    app.connect("doctree-read", shorten_citations, priority=900)
    app.connect("missing-reference", resolve_name, priority=100)
    app.connect("build-finished", correct_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
