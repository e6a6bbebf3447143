"""The page in a real browser: sliders move edges and numbers to what the library says, by keyboard
and in narrow windows; nothing leaves it.
"""

import json

import pytest

import tailpath as tp

ALPHAS = (0.5, 0.1, 0.01)
NASTY = "<img src=x onerror='window.hacked=1'>"


@pytest.fixture(scope="module")
def river():
    return tp.domains.river(rows=8, columns=6)


@pytest.fixture(scope="module")
def roads():
    rows = [
        (NASTY, "motorway", "town", 0.9, 10),
        (NASTY, "motorway", "jam", 0.1, 10),
        (NASTY, "lane", "town", 1, 14),
        ("jam", "wait", "town", 1, 40),
        ("town", "ring", "home", 1, 5),
        ("town", "centre", "home", 0.8, 3),
        ("town", "centre", "home", 0.2, 12),
    ]
    return tp.SSP.from_outcomes(rows, NASTY, ["home"])


def opened(browser, tmp_path, ssp, name):
    path = tmp_path / "page.html"
    tp.page(ssp, path, alphas=ALPHAS, methods=["quantile"], title=name)
    browser.set_window_size(1280, 1400)
    (
        browser.get_log("browser"),
        browser.get_log("performance"),
    )  # what came before is not this page's
    browser.get(path.as_uri())
    return browser


def by_id(browser, name):
    return browser.find_element("id", name)


def open_folds(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")


def key(browser, name, word, times=1):
    from selenium.webdriver.common.keys import Keys

    for _ in range(times):
        by_id(browser, name).send_keys(getattr(Keys, word))


def cells(browser, policy):
    row = browser.find_element("css selector", f"#numbers tr[data-policy='{policy}']")
    return [cell.text for cell in row.find_elements("tag name", "td")][1:4]


def test_alpha_moves_the_numbers_to_the_librarys(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    best = tp.solve_cvar_exact(river, 0.01)
    key(browser, "alpha", "HOME")
    for alpha in ALPHAS:
        assert by_id(browser, "alpha-value").text.startswith(f"{alpha:g},")
        for number, policy in ((0, tp.solve_expected(river).policy), (2, best.policy(alpha))):
            costs = tp.evaluate(river, policy, alpha)
            found = [float(text) for text in cells(browser, number)]
            assert found == pytest.approx(
                [costs.mean, costs.var(alpha), costs.cvar(alpha)], rel=1e-4
            )
        key(browser, "alpha", "ARROW_RIGHT")


def test_words_and_table_round_alike(browser, tmp_path):
    rows = [("home", "road", "work", 0.9, 10), ("home", "road", "work", 0.1, 172.5)]
    ssp = tp.SSP.from_outcomes([*rows, ("home", "train", "work", 1, 30)], "home", ["work"])
    opened(browser, tmp_path, ssp, "roads")
    key(browser, "alpha", "HOME")
    key(browser, "alpha", "ARROW_RIGHT")
    row = browser.find_element("css selector", "#numbers tr[data-policy='0']")
    assert row.find_elements("tag name", "td")[-1].text == "143"
    assert "there: 143 less" in by_id(browser, "words").text


def test_the_budget_slider_moves_the_edges(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    key(browser, "alpha", "END")
    best = tp.solve_cvar_exact(river, 0.01).policy(0.01)
    seen = set()
    for steps in range(0, best.budget + 1, 3):
        key(browser, "memory", "HOME")
        key(browser, "memory", "ARROW_RIGHT", steps)
        found = by_id(browser, "scene").get_attribute("data-decisions").split(",")
        wanted = [
            "" if river.is_goal[s] else str(best.choice_at(s, steps) - river.state_choices[s])
            for s in range(river.n_states)
        ]
        assert found == wanted
        seen.add(tuple(found))
        assert not by_id(browser, "usual").is_selected()
    assert len(seen) > 1


def test_policies_by_keyboard(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    chosen = browser.find_element("css selector", "#policies input:checked")
    from selenium.webdriver.common.keys import Keys

    chosen.send_keys(Keys.ARROW_LEFT)
    assert "quantile" in by_id(browser, "scene-title").text
    browser.find_element("css selector", "#policies input:checked").send_keys(Keys.ARROW_LEFT)
    assert "average-best" in by_id(browser, "scene-title").text
    found = by_id(browser, "scene").get_attribute("data-decisions").split(",")
    choices = tp.solve_expected(river).choices
    assert found == [
        "" if river.is_goal[s] else str(choices[s] - river.state_choices[s])
        for s in range(river.n_states)
    ]
    assert not by_id(browser, "memory").is_enabled()


def test_runs_are_played_step_by_step(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    key(browser, "alpha", "HOME")
    best = tp.solve_cvar_exact(river, 0.01).policy(0.5)
    worst = tp.worst_runs(river, best, 0.5, 3)
    run = worst[0] if worst.typical is None else worst.typical
    assert "Before the first" in by_id(browser, "step-words").text
    for place, step in enumerate(run):
        words = by_id(browser, "step-words").text
        assert f"at {step.state}" in words
        assert f"ends in {step.next_state}" in words
        by_id(browser, "forward").click()
        assert by_id(browser, "step").get_property("value") == str(place + 1)
    assert f"{run.cost:g} paid" in by_id(browser, "step-words").text


def test_nothing_leaves_the_page_and_nothing_breaks(browser, tmp_path, river, roads):
    for ssp in (river, roads):
        opened(browser, tmp_path, ssp, "a model")
        for name in ("alpha", "memory", "step"):
            if by_id(browser, name).is_enabled():
                key(browser, name, "ARROW_LEFT")
        by_id(browser, "colour").send_keys("where runs")
        if by_id(browser, "play").is_displayed():  # there is a bad run to play
            by_id(browser, "play").click()
        asked = [
            json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
        ]
        urls = [
            entry["params"]["request"]["url"]
            for entry in asked
            if entry["method"] == "Network.requestWillBeSent"
        ]
        assert urls
        assert all(url.startswith(("file://", "data:")) for url in urls), urls
        assert browser.get_log("browser") == []


def test_names_stay_text(browser, tmp_path, roads):
    opened(browser, tmp_path, roads, NASTY)
    assert by_id(browser, "title").text == NASTY
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements("css selector", "img") == []
    titles = browser.execute_script(
        "return [...document.querySelectorAll('#scene title')].map(each => each.textContent)"
    )
    assert any(NASTY in title for title in titles)


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_windows_of_any_width(browser, tmp_path, river, width):
    opened(browser, tmp_path, river, "river")
    browser.set_window_size(width, 900)
    # Headless windows have a least width of their own; the document's is what counts.
    inner, wide = browser.execute_script(
        "return [window.innerWidth, document.documentElement.scrollWidth]"
    )
    assert wide <= inner
    for name in ("alpha", "memory", "scene", "words", "tail", "curve", "frontier", "forward"):
        box = browser.execute_script(
            "const b = arguments[0].getBoundingClientRect(); return [b.left, b.right]",
            by_id(browser, name),
        )
        assert 0 <= box[0] < box[1] <= inner, name


@pytest.mark.parametrize("width", [360, 700, 1280, 1900])
def test_a_long_road_shows_its_goal_at_every_width(browser, tmp_path, width):
    """Fourteen places in a row: none is cut off, and none needs scrolling sideways."""
    rows = [
        (f"place {k}", way, f"place {k + 1}", p, cost)
        for k in range(13)
        for way, p, cost in (("road", 0.9, 3), ("road", 0.1, 9))
    ]
    ssp = tp.SSP.from_outcomes(
        [*rows, *((f"place {k}", "lane", f"place {k + 1}", 1, 4) for k in range(13))],
        "place 0",
        ["place 13"],
    )
    path = tmp_path / "page.html"
    tp.page(ssp, path, {"lanes": lambda state: "lane"}, alphas=[0.1], unit="minutes")
    browser.set_window_size(width, 900)
    browser.get(path.as_uri())
    inside = """const box = document.getElementById("scene").getBoundingClientRect();
        return [...document.querySelectorAll("#scene circle:not([visibility=hidden])")]
            .map(each => each.getBoundingClientRect())
            .filter(each => each.width > 0)
            .map(each => each.left >= box.left - 1 && each.right <= box.right + 1
                && each.bottom <= box.bottom + 1)"""
    found = browser.execute_script(inside)
    assert len(found) >= 14 and all(found)
    label = browser.find_element("css selector", "#scene text")
    assert label.value_of_css_property("paint-order").startswith("stroke"), "lines end around names"
    assert "13" in browser.execute_script(
        "return [...document.querySelectorAll('#scene text')].map(each =>"
        " each.textContent).join(' ')"
    )
    open_folds(browser)
    assert "lanes" in by_id(browser, "numbers").text and "minutes" in by_id(browser, "numbers").text


# ---------------------------------------------------------------------- answers first, in any light


def emulate(browser, **settings):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", settings)


def test_the_page_answers_first_and_starts_at_five_percent(browser, tmp_path, river):
    path = tmp_path / "page.html"
    tp.page(river, path, unit="steps")
    browser.set_window_size(1280, 1400)
    browser.get(path.as_uri())
    assert by_id(browser, "alpha-value").text == "0.05, the worst 5 %"
    stops = browser.find_elements("css selector", "#stops span")
    assert [stop.text for stop in stops] == ["50 %", "20 %", "10 %", "5 %", "1 %", "0.1 %"]
    costs = tp.evaluate(river, tp.solve_cvar_exact(river, 0.05).policy(0.05), 0.05)
    large = [each.text for each in browser.find_elements("css selector", "#large strong")]
    wanted = (costs.var(0.05), costs.cvar(0.05), costs.mean)
    assert large == [f"{value:.4g} steps" for value in wanted]
    assert "The price:" in by_id(browser, "headline").text
    top = [by_id(browser, name).location["y"] for name in ("headline", "large", "scene", "words")]
    assert top[:3] == sorted(top[:3])


def test_swatches_differ_without_colours(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    dashes = [
        each.get_attribute("stroke-dasharray")
        for each in browser.find_elements("css selector", "#policies .swatch line")
    ]
    assert len(dashes) == len(set(dashes)) == 3
    names = [each.text for each in browser.find_elements("css selector", "#tail .name")]
    assert sorted(names) == ["average-best", "optimal", "quantile"], "at the ends of the curves"


def test_dwelling_is_drawn(browser, tmp_path):
    rows = [("a", "go", "a", 0.9, 1), ("a", "go", "g", 0.1, 1)]
    path = tmp_path / "page.html"
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    tp.page(ssp, path, alphas=[0.05])
    browser.get(path.as_uri())
    key(browser, "step", "END")
    worst = tp.worst_runs(ssp, {"a": "go"}, 0.05, 3)
    run = worst[0] if worst.typical is None else worst.typical
    assert len(run) > 20
    assert browser.find_element("css selector", "#scene .dwell").text == f"×{len(run)}"


def test_dark_and_printed(browser, tmp_path, river):
    opened(browser, tmp_path, river, "river")
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(background)
    emulate(browser, features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.execute_script(background) != light
    emulate(browser, media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.execute_script(background) == "rgb(255, 255, 255)"
    assert not browser.find_element("css selector", ".controls").is_displayed()
    assert "the optimal policy" in by_id(browser, "printed").text, "the controls as text"
    emulate(browser, media="", features=[])
    assert browser.execute_script(background) == light


def test_a_place_nobody_comes_to_is_in_a_fold_and_one_step_is_no_steps(browser, tmp_path):
    rows = [("home", "walk", "work", 0.5, 1), ("home", "walk", "work", 0.5, 2)]
    ssp = tp.SSP.from_outcomes([*rows, ("shed", "path", "home", 1, 3)], "home", ["work"])
    path = tmp_path / "page.html"
    tp.page(ssp, path, alphas=[0.5], unit="steps")
    browser.get(path.as_uri())
    fold = browser.find_element("css selector", "#others-card summary")
    assert fold.text == "1 state that no run of these policies comes to"
    fold.click()
    assert by_id(browser, "others").text == "shed"
    circles = browser.find_elements("css selector", "#scene circle title")
    assert [each.get_attribute("textContent").split(",")[0] for each in circles] == ["home", "work"]
    assert browser.find_element("css selector", "#large strong").text == "1 step"


@pytest.mark.parametrize(("rows", "columns"), [(11, 4), (8, 6)])
def test_room_beside_a_tall_map_is_used(browser, tmp_path, rows, columns):
    opened(browser, tmp_path, tp.domains.river(rows=rows, columns=columns), "tall")
    browser.set_window_size(1340, 1400)
    scene, side = (
        browser.find_element("css selector", each).rect for each in (".top > article", ".side")
    )
    assert side["x"] > scene["x"] + scene["width"] and abs(side["y"] - scene["y"]) < 2
    assert browser.find_element("id", "words").text and browser.find_element("id", "blamed").text


def test_cards_of_a_row_are_of_one_height(browser, tmp_path):
    opened(browser, tmp_path, tp.domains.river(rows=7, columns=6), "river")
    browser.set_window_size(1340, 1400)
    boxes = [each.rect for each in browser.find_elements("css selector", ".cards > *")]
    rows = {}
    for box in boxes:
        rows.setdefault(round(box["y"]), []).append(box)
    assert len(rows) == 2 and all(
        max(b["height"] for b in row) - min(b["height"] for b in row) < 2 for row in rows.values()
    )
    ends = [max(b["x"] + b["width"] for b in row) for row in rows.values()]
    assert max(ends) - min(ends) < 2, "no row ends before the others"


def test_without_bad_runs_there_is_nothing_to_play(browser, tmp_path):
    """The optimum costs 11 in every run; the frame of the start lies over its neighbours."""
    path = tmp_path / "page.html"
    tp.page(tp.read("river:5x5"), path, alphas=[0.05])
    browser.get(path.as_uri())
    assert by_id(browser, "step-words").text == "No run costs more than VaR."
    assert not any(by_id(browser, name).is_displayed() for name in ("run", "play", "step"))
    last = browser.find_elements("css selector", "#scene rect")[-1]
    assert float(last.get_attribute("stroke-width")) > 0.05
    emulate(browser, media="print")
    assert by_id(browser, "run-printed").text == "No run costs more than VaR."
    emulate(browser, media="")


@pytest.fixture(scope="module")
def motorway():
    """Thirty junctions, two side by side."""
    rows = []
    for k in range(28):
        rows += [(f"j{k:02}", "country road", f"j{k + 1:02}", 0.5, cost) for cost in (24.37, 25.13)]
        rows += [
            (f"j{k:02}", "motorway", f"j{k + 2:02}", p, c) for p, c in ((0.9, 40.25), (0.1, 90))
        ]
    return tp.SSP.from_outcomes([*rows, ("j28", "country road", "j29", 1, 24)], "j00", ["j29"])


def test_words_and_charts_stand_beside_a_long_way_that_goes_down(browser, tmp_path, motorway):
    path = tmp_path / "page.html"
    tp.page(motorway, path, alphas=[0.1])
    browser.set_window_size(1000, 1400)
    browser.get(path.as_uri())
    scene = by_id(browser, "scene-card").rect
    for name in ("words-card", "player-card", "tail", "frontier"):
        box = by_id(browser, name).rect
        assert box["x"] > scene["x"] + scene["width"], name
        assert box["y"] + box["height"] < scene["y"] + scene["height"], name
    struck = """const texts = [...document.querySelectorAll("#scene text")];
        const names = texts.map(each => each.getBBox());
        const level = path => {
          const [from, to] = [0, path.getTotalLength()].map(at => path.getPointAtLength(at));
          return Math.abs(from.y - to.y) < 0.3;
        };
        const arrows = [...document.querySelectorAll("#scene path[marker-end]")].filter(level);
        const within = (box, at) => at.x > box.x && at.x < box.x + box.width
          && at.y > box.y && at.y < box.y + box.height;
        return [arrows.length, arrows.filter(arrow => {
          const middle = arrow.getPointAtLength(arrow.getTotalLength() / 2);
          return names.some(box => within(box, middle));
        }).length]"""
    arrows, through = browser.execute_script(struck)
    assert arrows >= 10 and through == 0, "arrows to a neighbour pass below its name"


def test_a_long_way_is_printed_whole_on_one_sheet(browser, tmp_path, motorway):
    path = tmp_path / "page.html"
    tp.page(motorway, path, alphas=[0.1])
    browser.set_window_size(1000, 1400)
    browser.get(path.as_uri())
    emulate(browser, media="print")
    millimetre = 96 / 25.4
    assert browser.find_element("css selector", "#scene svg").rect["height"] < 200 * millimetre
    emulate(browser, media="")


@pytest.mark.parametrize("width", [400, 700, 1000, 1340])
def test_no_column_of_numbers_is_cut(browser, tmp_path, motorway, width):
    path = tmp_path / "page.html"
    tp.page(motorway, path, alphas=[0.1])
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get(path.as_uri())
        open_folds(browser)
        wide, room = browser.execute_script(
            "const box = document.querySelector('.numbers');"
            " return [box.scrollWidth, box.clientWidth]"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= room
