"""Configuration of the documentation site, which `make docs` builds."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import trueodds

project = "trueodds"
author = "the trueodds developers"
copyright = author
version = release = trueodds.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "trueodds_docs.site",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".myst": "markdown"}
root_doc = "index"
exclude_patterns = ["_build", "_ext", "examples", "auto_examples/*.py", "**.ipynb"]
default_role = "py:obj"
nitpicky = False
pygments_style = "tango"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = [
    name
    for name in (
        *("torch", "torchmetrics", "lightning", "transformers", "keras"),
        *("mlflow", "datasets", "evaluate", "lm_eval"),
    )
    if importlib.util.find_spec(name) is None
]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("trueodds_docs.diagram_scraper.scrape_diagrams",),
    "reset_modules": (),
    "capture_repr": (),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "copyfile_regex": "",
    "abort_on_example_error": True,
    "nested_sections": False,
    "backreferences_dir": "auto_examples/uses",
}
suppress_warnings = ["config.cache"]

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "trueodds"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_permalinks_icon = "#"
html_theme_options = {
    "logo": {"text": "trueodds"},
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": False,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "back_to_top_button": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without others beneath them have no navigation at the side.
PAGES_ALONE = ("index", "search", "genindex", "tutorial", "choose", "papers", "where_we_lose", "glossary", "codes/*")
html_sidebars: dict[str, list[str]] = {page: [] for page in PAGES_ALONE}
html_context = {"default_mode": "auto"}

# The address of the published site, such as https://OWNER.github.io/REPOSITORY. With it there is a choice of versions.
if address := os.environ.get("TRUEODDS_DOCS_URL", "").rstrip("/"):
    published = os.environ.get("TRUEODDS_DOCS_VERSION", "dev").removeprefix("v")
    # The newest release has the address "stable" too, which search engines are to show.
    html_baseurl = f"{address}/{'dev' if published == 'dev' else 'stable'}/"
    html_theme_options |= {
        "switcher": {"json_url": f"{address}/switcher.json", "version_match": published},
        "check_switcher": False,
        "show_version_warning_banner": True,
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
