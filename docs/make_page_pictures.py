"""The pictures of `tailpath page` in the pages and the README: `python docs/make_page_pictures.py`.

Needs what `make browser` installs: Chromium, its driver and selenium.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import tailpath as tp

PICTURES = pathlib.Path(__file__).parent / "pictures"
WIDTH = 1340
ROADS = [  # from, action, to, probability, minutes
    ("home", "motorway", "junction", 0.9, 8),
    ("home", "motorway", "jam", 0.1, 8),
    ("home", "country road", "village", 1, 16),
    ("jam", "leave", "village", 1, 9),
    ("junction", "tunnel", "office", 0.985, 10),
    ("junction", "tunnel", "closed tunnel", 0.015, 10),
    ("junction", "country road", "village", 1, 12),
    ("closed tunnel", "turn back", "junction", 1, 10),
    ("village", "lane", "office", 0.8, 17),
    ("village", "lane", "tractor", 0.2, 9),
    ("village", "main road", "office", 1, 20),
    ("tractor", "follow", "office", 1, 18),
]
TRIPS = [  # from, action, to, how often, minutes
    ("home", "motorway", "junction", 82, 10),
    ("home", "motorway", "junction", 18, 22),
    ("home", "train", "work", 51, 33),
    ("home", "train", "work", 9, 37),
    ("junction", "motorway", "work", 43, 12),
    ("junction", "motorway", "work", 12, 30),
    ("junction", "back road", "work", 85, 23),
]


def roads() -> tp.SSP:
    columns = dict(zip(("from", "action", "to", "p", "time"), map(list, zip(*ROADS))))
    return tp.SSP.from_table(columns, start="home", goals=["office"])


def trips() -> tp.IntervalSSP:
    return tp.IntervalSSP.from_counts(TRIPS, "home", ["work"], confidence=0.9)


def where_runs_turn_bad(browser: Any) -> None:
    """Colours by setbacks, and the first bad run at its last step but one."""
    browser.execute_script(
        """const set = (name, value) => { const input = document.getElementById(name);
               input.value = value; for (const event of ["input", "change"])
               input.dispatchEvent(new Event(event)); };
           set("colour", "1"); set("step", document.getElementById("step").max - 1);"""
    )


def first_policy(browser: Any) -> None:
    """The policy that is best on average, with its most probable bad run after three steps."""
    browser.execute_script(
        """document.querySelector("#policies input").click();
           const step = document.getElementById("step"); step.value = 3;
           step.dispatchEvent(new Event("input"));"""
    )


def at_one_percent(browser: Any) -> None:
    """Care about the worst 1 %, where the River's optimal policy takes the bridge."""
    browser.execute_script(
        """const alpha = document.getElementById("alpha"); alpha.value = 4;
           alpha.dispatchEvent(new Event("input"));"""
    )


def nothing(browser: Any) -> None:
    """The page as it opens."""


#: By picture: the model, the title, options of the page, and what is moved on it.
PAGES: dict[str, tuple[Callable[[], Any], str, dict[str, Any], Callable[[Any], None]]] = {
    "river": (
        lambda: tp.read("river:10x10"),
        "river:10x10",
        {"methods": ["quantile"]},
        at_one_percent,
    ),
    "gridworld": (
        lambda: tp.read("gridworld:14x16"),
        "gridworld:14x16",
        {"methods": ["quantile"]},
        where_runs_turn_bad,
    ),
    "roads": (roads, "Roads to the office", {"unit": "minutes"}, first_policy),
    "band": (trips, "To work, from 300 counted trips", {"alphas": [0.9, 0.7, 0.5]}, nothing),
}


def main() -> None:
    from PIL import Image
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"):
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options, service) as browser:
        for name, (model, title, how, move) in PAGES.items():
            path = pathlib.Path(folder) / f"{name}.html"
            tp.page(model(), path, title=title, **how)
            browser.set_window_size(WIDTH, 1000)
            browser.get(path.as_uri())
            move(browser)
            tall = browser.execute_script("return document.body.scrollHeight")
            browser.set_window_size(WIDTH, tall + 160)
            target = PICTURES / f"page-{name}.png"
            browser.find_element("tag name", "body").screenshot(str(target))
            # A third of the bytes, with colours that the eye does not miss.
            few = Image.open(target).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
            few.save(target, optimize=True)


if __name__ == "__main__":
    main()
