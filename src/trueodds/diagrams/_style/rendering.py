"""Render a diagram as SVG, PNG or PDF, embed matplotlib's SVG in an HTML page, and write the numbers behind a diagram.

Names in an SVG are written as text, not as outlines, if the font of the pictures lacks one of their characters.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from html import escape
from json import dumps
from pathlib import Path
from types import MethodType
from typing import Any

from trueodds.core import json_files
from trueodds.core.atomic_write import open_atomic
from trueodds.core.errors import InputError, install_command
from trueodds.core.printable import without_surrogates
from trueodds.core.settings import check
from trueodds.core.table import format_csv
from trueodds.diagrams._style.publication import PublicationSize, rasterize_large_collections
from trueodds.diagrams._style.styling import POINTS_PER_INCH

SAVED_DPI = 200.0  # default resolution of a saved picture
FONT = "DejaVu Sans"  # comes with matplotlib, and has no Chinese, Japanese or Korean characters

_TEXT_BEFORE_SVG = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)  # XML declaration, and a DOCTYPE that points to the network
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)  # addresses of vocabularies, of no use in a page
_COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)  # a comment repeats each text that is drawn as outlines
# The style sheet begins with `*`, and would apply to the whole page.
_STYLE_ELEMENT = re.compile(r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)
_SVG_TAG = re.compile(r"<svg\b([^>]*)>")
_ID_ATTRIBUTE = re.compile(r'\bid="([^"]*)"')
_SIZE_ATTRIBUTE = re.compile(rb'\b(width|height)="([\d.]+)pt"')
_ID_OR_REFERENCE = re.compile(r'\b(id="|href="#|url\(#)')


def embed_svg(matplotlib_svg: str, prefix: str, description: str) -> str:
    """Return matplotlib's SVG as one element with prefixed ids and an alternative text, without style or metadata.

    >>> svg = embed_svg('<?xml?><svg width="9pt"><g id="a"/><use xlink:href="#a"/></svg>', "x", "A < B")
    >>> start, content = svg.split(' style="stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto">')
    >>> start
    '<svg width="9pt" role="img" aria-label="A &lt; B"'
    >>> content
    '<title>A &lt; B</title><g id="x-a"/><use xlink:href="#x-a"/></svg>'
    """
    body = matplotlib_svg
    for pattern in (_TEXT_BEFORE_SVG, _COMMENT, _METADATA, _STYLE_ELEMENT):
        body = pattern.sub("", body)
    body = _ID_OR_REFERENCE.sub(lambda match: f"{match[1]}{prefix}-", body)
    counts: Counter[str] = Counter()

    def number_repeated_id(match: re.Match[str]) -> str:
        """Number the later uses of an id, so that every id is unique."""
        # Texts of one kind share an id, which must be unique within a page.
        counts[match[1]] += 1
        return match[0] if counts[match[1]] == 1 else f'id="{match[1]}-{counts[match[1]]}"'

    body = _ID_ATTRIBUTE.sub(number_repeated_id, body)
    # The style sheet's two declarations, for this picture only; both are inherited.
    style = "stroke-linejoin:round;stroke-linecap:butt;max-width:100%;height:auto"
    text = escape(description)
    return _SVG_TAG.sub(
        lambda match: f'<svg{match[1]} role="img" aria-label="{text}" style="{style}"><title>{text}</title>', body, 1
    )


def import_matplotlib() -> Any:
    """Import matplotlib, or raise TO701 where it is not installed."""
    try:
        return importlib.import_module("matplotlib")
    except ImportError:
        raise InputError("TO701", "Drawing needs matplotlib.", "no matplotlib", install_command("report")) from None


def render(
    draw: Callable[[], Any], file_format: str, dpi: float | None, publication: PublicationSize | None = None
) -> bytes:
    """Draw a new figure and return the bytes of an SVG, PNG or PDF file without a time stamp.

    In an SVG all text is drawn as outlines, except characters that the font lacks, which the reader's fonts draw.
    A figure for a publication is enlarged, type included, and its PDF embeds TrueType fonts, as many journals require.
    `dpi` is its resolution; None is that of the publication's style, or the default one.
    """
    if dpi is None:
        dpi = SAVED_DPI if publication is None else publication.style.dpi
    # A local context: the user's matplotlib style must not change what a report looks like.
    rc_settings = {
        "svg.hashsalt": "trueodds",
        "svg.fonttype": "path",
        "pdf.fonttype": 3 if publication is None else 42,
        "pdf.use14corefonts": False,
        "font.family": [FONT],
        "font.size": 10.0,
        "axes.unicode_minus": True,
        "text.usetex": False,
        "text.color": "black",
    }
    metadata_by_format = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
    scale = 1.0 if publication is None else publication.scale
    out = io.BytesIO()
    is_svg = file_format == "svg"
    silence = without_warnings_about_missing_characters() if is_svg else nullcontext()
    with import_matplotlib().rc_context(rc_settings), silence:
        figure = draw()
        if is_svg:
            write_missing_characters_as_text(figure)
        if publication is not None:
            rasterize_large_collections(figure)
        if publication is not None and file_format == "pdf":
            _write_enlarged_pdf(figure, out, dpi, scale)
            return out.getvalue()
        # The printed size of a PNG follows from the resolution that the file states.
        png_settings: dict[str, Any] = (
            {"pil_kwargs": {"dpi": (dpi, dpi)}} if file_format == "png" and scale != 1 else {}
        )
        metadata = metadata_by_format[file_format]
        figure.savefig(out, format=file_format, dpi=dpi * scale, metadata=metadata, facecolor="white", **png_settings)
    return _enlarge_svg(out.getvalue(), scale) if file_format == "svg" and scale != 1 else out.getvalue()


def write_picture(path: Path, draw_svg: Callable[[], str], draw_image: Callable[[str], bytes]) -> None:
    """Write a picture in the format that the suffix of the file names; raise TO203 for another suffix."""
    file_format = path.suffix.lower().removeprefix(".")
    if file_format not in ("svg", "png", "pdf"):
        problem = "The file name must end with .svg, .png, .pdf, .csv or .json."
        raise InputError("TO203", problem, repr(path.name), "Add the ending.")
    if file_format == "svg":
        content = ('<?xml version="1.0" encoding="utf-8"?>\n' + draw_svg()).encode()
    else:
        content = draw_image(file_format)
    with open_atomic(path, "TO703") as file:
        file.write(content)


def _write_enlarged_pdf(figure: Any, out: io.BytesIO, dpi: float, scale: float) -> None:
    """Write a figure as a PDF page that is larger by a factor, with everything in it."""
    from matplotlib.backends import backend_mixed, backend_pdf

    backend: Any = backend_pdf
    mixed_backend: Any = backend_mixed
    figure.set_dpi(POINTS_PER_INCH)
    width, height = figure.get_size_inches()
    pdf = backend.PdfFile(out, metadata={"CreationDate": None})
    pdf.newPage(width * scale, height * scale)
    pdf.width, pdf.height = width, height  # matplotlib clips lines at them, before the page is enlarged or reduced
    pdf.output(scale, 0, 0, scale, 0, 0, backend.Op.concat_matrix)
    pdf_renderer = backend.RendererPdf(pdf, dpi * scale, height, width)
    renderer = mixed_backend.MixedModeRenderer(figure, width, height, dpi * scale, pdf_renderer)
    figure.draw(renderer)
    renderer.finalize()
    pdf.finalize()
    pdf.close()


def _enlarge_svg(svg: bytes, scale: float) -> bytes:
    """Multiply the width and height of an SVG; its content scales with them."""
    head, tag, rest = svg.partition(b"<svg ")
    attributes, end, content = rest.partition(b">")
    enlarged = _SIZE_ATTRIBUTE.sub(lambda match: b'%s="%.6gpt"' % (match[1], float(match[2]) * scale), attributes)
    return head + tag + enlarged + end + content


def is_drawable(text: str) -> bool:
    """Return whether the font of the pictures has every character of the text.

    >>> is_drawable("Größe ≤ 3"), is_drawable("\u732b")
    (True, False)
    """
    return text.isascii() or all(ord(character) in _characters() for character in text if not character.isspace())


def write_missing_characters_as_text(figure: Any) -> None:
    """Prepare a figure so that its SVG contains each text that the font cannot draw as text, for the reader's fonts."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.draw = MethodType(_draw_outlines_or_text, text)


@contextmanager
def without_warnings_about_missing_characters() -> Iterator[None]:
    """Ignore matplotlib's warnings about characters that its font lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def _draw_outlines_or_text(text: Any, renderer: Any) -> None:
    """Draw a text object of matplotlib as outlines, or as text if the font lacks one of its characters."""
    import matplotlib

    # This is decided while drawing, because the labels of ticks are set only then.
    if is_drawable(text.get_text()):
        type(text).draw(text, renderer)
        return
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        type(text).draw(text, renderer)


@cache
def _characters() -> frozenset[int]:
    from matplotlib import font_manager

    path = font_manager.findfont(FONT)
    return frozenset(font_manager.get_font(path).get_charmap())


DATA_SUFFIXES = (".csv", ".json")


def output_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to be written; raise TO703 if it ends with a separator, and so names a folder."""
    if not os.path.basename(check("path", path, str | os.PathLike)):
        raise InputError("TO703", "The file cannot be written.", f"the folder {path}", "Name a file in the folder.")
    return Path(path)


def is_data_file(path: Path, picture_settings: Mapping[str, Any]) -> bool:
    """Return whether a file name ends with .csv or .json; then raise TO203 if any of `picture_settings` is not None.

    >>> is_data_file(Path("a.csv"), {"dpi": None}), is_data_file(Path("a.png"), {"dpi": 300})
    (True, False)
    """
    if path.suffix.lower() not in DATA_SUFFIXES:
        return False
    if unused := [name for name, value in picture_settings.items() if value is not None]:
        fix = f"Leave {unused[0]} out, or write a .svg, .png or .pdf."
        raise InputError("TO203", "A file of data has no title, legend or size.", f"{unused[0]} for {path.name}", fix)
    return True


def write_data_file(
    path: str | Path, content: Mapping[str, Any], table: Mapping[str, Sequence[Any]], code: str = "TO703"
) -> None:
    """Write `content` as strict JSON or, if the file name ends with .csv, the columns of `table` as CSV.

    `code` is the code of the error that is raised if the file cannot be written.
    """
    if Path(path).suffix.lower() == ".json":
        text = without_surrogates(dumps(content, allow_nan=False, indent=2)) + "\n"
    else:
        text = format_csv(table, line_end="\r\n")
    json_files.write_text(path, text, code)
