"""Settings of the documentation site: ``make docs`` builds it into site/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from weakref import WeakSet

from docutils import nodes
from latex2mathml.converter import convert
from matplotlib.figure import Figure
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst
from sphinx_gallery.sorting import ExplicitOrder

ROOT = Path(__file__).parents[1]
_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "tnesi"
project_copyright = author = "The tnesi developers"
version = release = _project["version"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["generated/gallery/*.ipynb", "generated/gallery/*.py"]
templates_path = ["_templates"]
nitpicky = False
smartquotes = False  # would turn the -- of options into dashes
show_warning_types = True
suppress_warnings = ["config.cache"]  # the function that draws figures cannot be pickled

# Markdown as on the pages of a repository
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

# docstrings
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_use_plots = False

_EXAMPLES = (
    "one_label_per_class",
    "pictures",
    "documents",
    "tables",
    "counts",
    "active_labeling",
    "streaming",
    "dask_cluster",
    "model_files",
)
_shown: WeakSet[Figure] = WeakSet()


def _draw(block: tuple[Any, ...], variables: dict[str, Any], gallery: dict[str, Any]) -> str:
    """Show the variable ``figure`` of an example, whether it belongs to pyplot or not, below the code that drew it."""
    figure = variables["example_globals"].get("figure")
    if figure is None or figure in _shown:
        return ""
    _shown.add(figure)
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=100)
    return str(figure_rst([path], gallery["src_dir"]))


sphinx_gallery_conf = {
    "image_scrapers": (_draw,),
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("tnesi",),
    "filename_pattern": "/plot_",
    "ignore_pattern": r"(__init__|mnist)\.py",
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in _EXAMPLES]),
    "abort_on_example_error": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # times of the machine that built the site
    "copyfile_regex": r".*\.rst",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "tnesi"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "icon_links": [{"name": "Source", "url": _project["urls"]["Source"], "icon": "fa-solid fa-code"}],
}
html_sidebars: dict[str, list[str]] = {"index": [], "quick-start": []}

_PAGES = {"../README.md": "figures.md", "../CHANGELOG.md": "changelog.md", "../SECURITY.md": "security.md"}
"""Files of the repository, and the pages of the site that include them."""


def _map_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links that leave docs/ in the repository lead to pages of the site."""
    source[0] = re.sub(r"\]\((\.\./[A-Z]+\.md)", lambda link: f"]({_PAGES[link[1]]}", source[0])


def _map_included_links(app: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """Do the same for an included file, which is one folder higher."""
    text = re.sub(r"\]\((?!https?:|#)", "](../", source[0]).replace("](../docs/", "](")
    _map_links(app, parent, found := [text])
    source[0] = found[0]


def _visit_math(self: Any, node: nodes.Element) -> None:
    block = isinstance(node, nodes.math_block)
    formula = convert(node.astext(), display="block" if block else "inline")
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    # neither scripts nor a network are needed
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
    app.connect("source-read", _map_links)
    app.connect("include-read", _map_included_links)
    app.add_lexer("csv", TextLexer)
