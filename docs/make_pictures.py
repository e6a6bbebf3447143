"""The pictures of some pages and of the errata: each is the `figure` that a page's own code makes.

python docs/make_pictures.py [flights rddl errata entropic evaluation]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGES = ("flights", "rddl", "errata", "entropic", "evaluation")
#: Pages that stand elsewhere.
ELSEWHERE = {"errata": DOCS.parent / "papers" / "forpecvar" / "errata.md"}


def draw(name: str) -> None:
    """Run the examples of a page and save its figure."""
    scope: dict[str, Any] = {}
    text = ELSEWHERE.get(name, DOCS / f"{name}.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, f"{name}.md", "exec"), scope)
    scope["figure"].savefig(DOCS / "pictures" / f"{name}.png", dpi=110)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        draw(page)
