"""How the gallery finds its pictures: `axes` (a figure that belongs to no window) and `picture` (a
file) of a script.
"""

from __future__ import annotations

import ast
import pathlib
import shutil
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def _get_sg_image_scraper() -> Any:
    return scrape


def scrape(block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Save what the block left behind, and show it."""
    found, places = variables["example_globals"], variables["image_path_iterator"]
    saved = []
    if (axes := found.pop("axes", None)) is not None:
        saved.append(next(places))
        first = axes[0] if isinstance(axes, (list, tuple)) else axes
        first.figure.savefig(saved[-1], dpi=110)
    for picture in found.pop("pictures", ()):
        saved.append(next(places))
        shutil.copyfile(pathlib.Path(picture), saved[-1])
    script = pathlib.Path(variables["src_file"]).read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(script)) or "").partition("\n")[0]
    return figure_rst(saved, settings["src_dir"], title)
