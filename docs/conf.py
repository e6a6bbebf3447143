"""The site: `make docs` builds it without a network, and every warning is an error.

Pages are plain Markdown in this folder, for GitHub and the site alike; the sections are the
toctrees of index.md and of the pages it names. Tutorials are notebooks in Markdown, which the
build runs; pictures of the gallery are scripts, which it runs too.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import sys
from typing import Any

from docutils import nodes
from sphinx.util import logging

import tailpath

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_reference

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
#: Pages that stand elsewhere in the repository, by their names here.
ROOT_PAGES = {
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
    "conduct": "CODE_OF_CONDUCT.md",
    "study": "papers/forpecvar/README.md",
    "errata": "papers/forpecvar/errata.md",
}
#: What a page would load from another host.
ELSEWHERE = re.compile(
    r'<(?:script|img)[^>]* src="https?:[^"]*"'
    r'|<link[^>]*stylesheet[^>]*"https?:[^"]*"',
)
#: Seconds after which a cell of a tutorial hangs; on a machine with nothing else to do none takes
#: ten.
PATIENCE = 300

project = "tailpath"
author = "The tailpath developers"
copyright = author
version = release = tailpath.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery", "live", "auto_gallery/*.ipynb", "auto_gallery/*.py", "notebooks"]
templates_path = ["_templates"]
nitpicky = True
# A format in the default of an argument, which numpydoc takes for a type.
nitpick_ignore = [("py:class", "6g}'")]
highlight_language = "none"
default_role = "code"

autosummary_generate = True
# Where names differ by capitals alone, some systems would take their pages for one file.
autosummary_filename_map = {
    f"tailpath.{name}": f"tailpath.{name}-function"
    for name in tailpath.__all__
    if name.islower() and name.capitalize() in tailpath.__all__
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "dollarmath"]
# `$` in prose is money or a shell unless it hugs what it encloses.
myst_dmath_allow_space = False
myst_dmath_double_inline = False
html_math_renderer = "mathml"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = PATIENCE
nb_execution_show_tb = True
nb_merge_streams = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "copyfile_regex": r"$^",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "reset_modules": (),
    "capture_repr": (),
    "image_scrapers": ("gallery_pictures",),
    "min_reported_time": 1000,
    "plot_gallery": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "tailpath"
html_static_path = ["_static"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
# The page of a policy that the front page shows, alive.
html_extra_path = ["live"]
html_css_files = ["tailpath.css"]
html_show_sourcelink = False
# Summaries of what was found are fetched, which pages opened as files may not do.
html_show_search_summary = False
html_theme_options = {
    "logo": {"text": "tailpath"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "comparison": []}


def at_home(app: Any, name: str, source: list[str]) -> None:
    """Show pages that stand elsewhere in the repository here, and lead links to them here."""
    if name in ROOT_PAGES:
        text = (ROOT / ROOT_PAGES[name]).read_text(encoding="utf-8")
        # Those of a paper stand one folder deeper than this one.
        text = (
            text.replace("](docs/", "](")
            .replace("](../../docs/", "](")
            .replace("](../../", "](../")
        )
        for page, file in ROOT_PAGES.items():
            text = text.replace(f"]({file}", f"]({page}.md")
        source[0] = text
    up = "../" * name.count("/")
    for page, file in ROOT_PAGES.items():
        source[0] = source[0].replace(f"](../{up}{file}", f"]({up}{page}.md")


def write_notebooks() -> None:
    """Every tutorial as a notebook to take home."""
    import nbformat
    from myst_nb.core.read import read_myst_markdown_notebook

    (HERE / "notebooks").mkdir(exist_ok=True)
    for page in sorted((HERE / "tutorials").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if "file_format: mystnb" in text:
            text = re.sub(r"^\{download\}.*\n", "", text, flags=re.MULTILINE)
            # Cells of a notebook are not inside one another: what folds here stands open there.
            text = re.sub(r"^</?details>.*\n", "", text, flags=re.MULTILINE)
            # At home there are no other pages to lead to.
            text = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
            notebook = read_myst_markdown_notebook(text)
            nbformat.write(notebook, HERE / "notebooks" / f"{page.stem}.ipynb")


def write_live_page() -> None:
    """The page that the front page shows: to look at, and to try."""
    (HERE / "live").mkdir(exist_ok=True)
    tailpath.page(tailpath.domains.river(rows=10, columns=5), HERE / "live" / "live.html")


def check(app: Any, error: Exception | None) -> None:
    """No page loads anything from elsewhere: they are read offline."""
    log = logging.getLogger(__name__)
    for page in pathlib.Path(app.outdir).rglob("*.html"):
        for found in ELSEWHERE.findall(page.read_text("utf-8")):
            log.warning("%s needs the network: %s", page.name, found)


def describe(app: Any, page: Any) -> None:
    """Pictures of tutorials are described by the line of code that draws them."""
    for cell in page.findall(nodes.container):
        if cell.get("nb_element") != "cell_code":
            continue
        lines = next(cell.findall(nodes.literal_block)).astext().strip().splitlines()
        for image in cell.findall(nodes.image):
            image.setdefault("alt", f"The picture that {lines[-1].removeprefix('_ = ')} draws")


def mathml(translator: Any, node: Any) -> None:
    """Formulas as MathML, which browsers draw by themselves: no script, no network."""
    from docutils.utils.math import latex2mathml

    block = isinstance(node, nodes.math_block)
    formula = latex2mathml.tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("source-read", at_home)
    app.connect("doctree-read", describe)
    app.connect("build-finished", check)


# Before Sphinx looks which pages there are; those of names that are gone must not stay.
shutil.rmtree(HERE / "api", ignore_errors=True)
make_reference.main()
write_notebooks()
write_live_page()
