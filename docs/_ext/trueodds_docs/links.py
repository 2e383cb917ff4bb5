"""Links to pages: from codes and names of methods in any text, and from the index."""

from __future__ import annotations

import inspect
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from .code_pages import CODE
from .method_pages import FAMILIES, pages_of_names
from .public_pages import public_objects

UNLINKED = (nodes.title, nodes.reference, nodes.literal_block, nodes.doctest_block, addnodes.pending_xref, nodes.math)
# Pages whose names of methods, written as code, lead to the reference.
FAMILY_OF_PAGE = {
    "estimators": "estimators",
    "tests": "tests",
    "level": "tests",
    "calibrators": "calibrators",
    "fixes": "calibrators",
    "diagrams": "diagrams",
}


def link_to_document(env: Any, target: str, content: nodes.Node) -> addnodes.pending_xref:
    """Return a reference to a document that Sphinx resolves when it writes the page."""
    link = addnodes.pending_xref(
        "", content, refdomain="std", reftype="doc", reftarget=f"/{target}", refexplicit=True, refwarn=True
    )
    link["refdoc"] = env.docname
    return link


def is_linkable(node: nodes.Node) -> bool:
    """Return whether text may become a link where it is."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, UNLINKED):
            return False
        parent = parent.parent
    return True


class LinkCodes(SphinxTransform):
    """Turns each code of an error or a note into a link to its page."""

    default_priority = 450

    def apply(self, **kwargs: Any) -> None:
        """Replace text and code that names a code or a method."""
        page = self.env.docname
        family = FAMILY_OF_PAGE.get(page)
        known = self.env.app.trueodds_codes
        for node in list(self.document.findall(nodes.literal)):
            text = node.astext()
            if not is_linkable(node) or page == f"codes/{text}":
                continue
            if text in known:
                target = f"codes/{text}"
            elif family and f"reference/{family}/{text}" in self.env.found_docs:
                target = f"reference/{family}/{text}"
            else:
                continue
            node.replace_self(link_to_document(self.env, target, node.deepcopy()))
        for text in list(self.document.findall(nodes.Text)):
            if CODE.search(text) and not isinstance(text.parent, nodes.literal) and is_linkable(text):
                text.parent.replace(text, list(self._with_links(str(text), known)))

    def _with_links(self, text: str, known: set[str]) -> list[nodes.Node]:
        parts: list[nodes.Node] = []
        end = 0
        for match in CODE.finditer(text):
            if match[0] in known and self.env.docname != f"codes/{match[0]}":
                parts.append(nodes.Text(text[end : match.start()]))
                content = nodes.inline("", match[0], classes=["code-link"])
                parts.append(link_to_document(self.env, f"codes/{match[0]}", content))
                end = match.end()
        return [*parts, nodes.Text(text[end:])]


class AddIndexEntries(SphinxTransform):
    """Adds the entries of a page to the index. They lead to its beginning, as other results of the search do."""

    default_priority = 450

    def apply(self, **kwargs: Any) -> None:
        """Add the entries at the beginning of the page."""
        if names := self.env.app.trueodds_index.get(self.env.docname):
            node = addnodes.index(entries=[("single", name, "", "main", None) for name in names])
            self.document.insert(0, node)


def resolve_name(app: Any, env: Any, node: addnodes.pending_xref, content: nodes.Node) -> nodes.reference | None:
    """Resolve the name of a method, function or class in a docstring; methods of the same family come first."""
    name = node.get("reftarget", "").removeprefix("~").removeprefix("to.")
    if node.get("refdomain") != "py" or name in app.trueodds_settings:
        return None
    refdoc = node.get("refdoc", "")
    family = refdoc.rpartition("/")[0]
    candidates = sorted(app.trueodds_pages.get(name, []), key=lambda page: not page.startswith(f"{family}/"))
    if not candidates or candidates[0] == refdoc:
        return None
    reference = nodes.reference("", "", content, internal=True)
    reference["refuri"] = app.builder.get_relative_uri(refdoc, candidates[0])
    return reference


def pages_by_name(docs: Any) -> dict[str, list[str]]:
    """Map the names of methods, functions and classes to the documents about them."""
    pages = {name: list(targets) for name, targets in pages_of_names().items()}
    for chapter, objects in public_objects(docs).items():
        for name in objects:
            pages.setdefault(name, []).append(f"reference/{chapter}/{name}")
    return pages


def names_of_settings() -> set[str]:
    """Return the names of the settings of all methods, which docstrings do not mean as names of methods."""
    return {
        setting
        for family in FAMILIES
        for name in family.names()
        for setting in inspect.signature(family.registered().load(name)).parameters
    } | {"bins", "score"}
