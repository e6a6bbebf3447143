"""The page as a document: its data are the library's, its names stay text, and it stands alone.
`tests/browser` looks at it in a browser.
"""

import re

import pytest

import tailpath as tp
from tailpath.errors import FormatError, OptionError, PolicyError
from tests.cli.running import refusal, run
from tests.show.listing import data_of

NASTY = "</script><script>window.hacked = 1</script>"


@pytest.fixture(scope="module")
def river():
    return tp.domains.river(rows=6, columns=5)


@pytest.fixture(scope="module")
def told(river):
    return data_of(tp.page(river, alphas=(0.5, 0.05), methods=["quantile"], title="a river").html)


def test_numbers_are_the_librarys(river, told):
    assert told["alphas"] == [0.5, 0.05]
    best = tp.solve_cvar_exact(river, 0.05)
    plan = tp.solve_cvar_quantile(river, tp.log_atoms(0.005, 25))
    for alpha, row in zip(told["alphas"], told["cases"]):
        for policy, case in zip(
            (tp.solve_expected(river).policy, plan.policy(alpha), best.policy(alpha)), row
        ):
            costs = tp.evaluate(river, policy, alpha)
            found = (case["mean"], case["var"], case["cvar"])
            assert found == pytest.approx(
                (costs.mean, costs.var(alpha), costs.cvar(alpha)), rel=1e-8
            )
            worst = tp.worst_runs(river, policy, alpha, 3)
            runs = [*([] if worst.typical is None else [worst.typical]), *worst]
            assert [r["probability"] for r in case["runs"]] == pytest.approx(
                [r.probability for r in runs], rel=1e-8
            )
            assert [r["typical"] for r in case["runs"]] == [r is worst.typical for r in runs]
            assert sum(share for _, _, share in case["blame"]) == pytest.approx(
                1 if worst.blame else 0, abs=1e-6
            )
            assert sum(setback for _, setback, _ in case["blame"]) == pytest.approx(
                1 if worst.blame else 0, abs=1e-6
            )


def test_decisions_are_the_policies(river, told):
    best = tp.solve_cvar_exact(river, 0.05).policy(0.05)
    for place, runs in zip(
        told["scene"]["places"], told["tables"][told["cases"][1][2]["table"]]["decisions"]
    ):
        for budget in range(best.budget + 1):
            position = [at for since, at in runs if since <= budget][-1]
            choice = best.choice_at(place["state"], budget)
            assert position == (choice - river.state_choices[place["state"]] if choice >= 0 else -1)


def test_the_frontier_has_the_ends_it_must_have(river, told):
    for alpha, points in zip(told["alphas"], told["frontier"]):
        assert points[0][0] == pytest.approx(tp.solve_expected(river).cost(river.start), rel=1e-8)
        assert min(cvar for _, cvar in points) == pytest.approx(
            tp.solve_cvar_exact(river, alpha).cvar(alpha), rel=1e-8
        )
        assert [cvar for _, cvar in points] == sorted((cvar for _, cvar in points), reverse=True)


def test_words_say_what_the_numbers_say(river, told):
    words = " ".join(told["words"][-1])
    costs = tp.evaluate(river, tp.solve_expected(river).policy, 0.05)
    assert f"{costs.mean:.4g} on average" in words
    assert f"{costs.cvar(0.05):.4g}" in words
    assert "on waterfall cells every move leads to the start" in words
    assert "moves are certain" in words


def test_the_page_answers_first(river, told):
    best, average = tp.solve_cvar_exact(river, 0.05), tp.solve_expected(river).policy
    for alpha, head in zip(told["alphas"], told["headlines"]):
        costs = tp.evaluate(river, best.policy(alpha), alpha)
        numbers = [value for value, _ in head["numbers"]]
        assert numbers == pytest.approx([costs.var(alpha), costs.cvar(alpha), costs.mean], rel=1e-8)
        taken = best.policy(alpha).action(river.start)
        others = tp.evaluate(river, average, alpha)
        gains = others.cvar(alpha) > costs.cvar(alpha) * (1 + 1e-9)
        assert gains == (alpha == 0.05), "both sentences are looked at"
        told_first = "In the worst 5 %" if gains else "What is best on average is also best"
        assert head["sentence"].startswith(f"First step: {taken}. {told_first}")
        if gains:
            assert f"costs {others.cvar(alpha):.4g} there" in head["sentence"]
            assert f"{costs.mean - others.mean:.3g} more on average" in head["sentence"]
    assert told["headlines"][1]["numbers"][0][1].startswith("promise for 95 %")


def test_the_headline_says_where_nothing_is_gained():
    ssp = tp.SSP.from_outcomes([("a", "go", "g", 1, 3)], "a", ["g"])
    [head] = data_of(tp.page(ssp, alphas=[0.1], unit="minutes").html)["headlines"]
    wanted = "What is best on average is also best in the worst 10 % of runs, which cost 3 minutes"
    assert head["sentence"] == f"{wanted} on average."


def test_names_stay_text():
    ssp = tp.SSP.from_outcomes(
        [
            (NASTY, "<b>go</b>", "b", 0.5, 1),
            (NASTY, "<b>go</b>", "goal", 0.5, 1),
            ("b", "go", "goal", 1, 5),
        ],
        NASTY,
        ["goal"],
    )
    text = tp.page(
        ssp,
        None,
        {NASTY + " too": {NASTY: "<b>go</b>"}},
        alphas=(0.5,),
        title=NASTY,
        unit="<b>minutes</b>",
    ).html
    assert "<script>window" not in text
    assert data_of(text)["name"] == NASTY
    assert data_of(text)["scene"]["places"][0]["name"] == NASTY


def test_a_page_asks_no_one(told, river):
    text = tp.page(river, alphas=(0.5,)).html
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert len(text) < 6_000_000


def test_models_too_large_to_draw_show_the_states_that_matter():
    ssp = tp.domains.river(rows=60, columns=50)
    scene = data_of(tp.page(ssp, alphas=(0.5,)).html)["scene"]
    assert scene["kind"] == "part"
    assert 2 <= len(scene["places"]) <= 30
    assert any(place["goal"] for place in scene["places"]) and any(
        place["state"] == ssp.start_index for place in scene["places"]
    )
    far = max(place["x"] for place in scene["places"]), max(place["y"] for place in scene["places"])
    assert far[0] < scene["width"] and far[1] < scene["height"], "all of it is in the picture"


def test_a_start_at_the_goal_makes_a_page_too():
    ssp = tp.SSP.from_outcomes([("a", "go", "goal", 1, 3)], "goal", ["goal"])
    assert data_of(tp.page(ssp, alphas=(0.5,)).html)["cases"][0][1]["mean"] == 0


def test_the_command(capsys, tmp_path):
    out = tmp_path / "page.html"
    record = run(
        capsys, "page", "river:5x4", "--out", out, "--alpha", 0.1, "--title", "My river", "--json"
    ).json
    assert record["bytes"] == out.stat().st_size
    assert "<title>My river</title>" in out.read_text(encoding="utf-8")
    assert data_of(out.read_text(encoding="utf-8"))["names"] == ["average-best", "optimal"], (
        "nobody asked for a planner"
    )
    mine = tmp_path / "mine.json"
    tp.write_policy(tp.solve_expected(tp.read("river:5x4")).policy, mine)
    asked = ("--policy", mine, "--method", "quantile", "--unit", "steps")
    run(capsys, "page", "river:5x4", "--out", out, "--alpha", 0.1, *asked)
    told = data_of(out.read_text(encoding="utf-8"))
    assert (told["names"], told["costs"]) == (
        ["average-best", "mine", "quantile", "optimal"],
        "steps",
    )
    assert told["name"] == "river:5x4"
    tp.write(tp.read("river:5x4"), tmp_path / "river.json")
    run(capsys, "page", tmp_path / "river.json", "--out", out, "--alpha", 0.1)
    assert data_of(out.read_text(encoding="utf-8"))["name"] == "river.json", "not where it lies"
    assert "no method 'quntile'" in refusal(
        capsys, "page", "river:5x4", "--out", out, "--method", "quntile"
    )
    assert "out" in refusal(capsys, "page", "river:5x4")
    assert "no such file or folder" in refusal(
        capsys, "page", "river:5x4", "--alpha", 0.5, "--out", tmp_path / "no" / "page.html"
    )


# ---------------------------------------------------------------------- policies of one's own


def roads():
    rows = [
        ("home", "road", "work", 0.9, 20),
        ("home", "road", "jam", 0.1, 20),
        ("jam", "wait", "work", 1, 40),
    ]
    return tp.SSP.from_outcomes([*rows, ("home", "train", "work", 1, 30)], "home", ["work"])


def test_policies_of_every_kind(tmp_path):
    """Each with its own numbers, its own memory, and a sentence."""
    ssp = roads()
    coin = tp.MixedPolicy(
        [
            tp.policy(ssp, lambda state: 0 if state == "jam" else "road"),
            tp.policy(ssp, {"home": "train"}),
        ],
        [0.5, 0.5],
    )
    mine = {
        "table": {"home": "train"},
        "chance": {"home": {"road": 0.25, "train": 0.75}},
        "coin": coin,
        "history": lambda state, history: "road" if len(history) < 4 else "wait",
        "on time": tp.solve_on_time(ssp, 30),
        "planner": tp.solve_cvar_quantile(ssp, [0.1, 0.5, 1]),
    }
    made = tp.page(ssp, tmp_path / "roads.html", mine, alphas=[0.5, 0.1], unit="minutes")
    assert (tmp_path / "roads.html").read_text(encoding="utf-8") == made.html
    told = data_of(made.html)
    assert (
        told["names"] == ["average-best", *mine, "optimal"]
        and told["costs"] == "minutes"
        and told["name"] == "From home to work"
    )
    remembers = [told["tables"][case["table"]]["remembers"] for case in told["cases"][1]]
    assert remembers == [
        "nothing",
        "nothing",
        "nothing",
        "more",
        "more",
        "budget",
        "atom",
        "budget",
    ]
    for name, case in zip(told["names"][1:-1], told["cases"][1][1:-1]):
        costs = tp.evaluate(ssp, tp.policy(ssp, mine[name], alpha=0.1), 0.1)
        assert (case["mean"], case["cvar"]) == pytest.approx(
            (costs.mean, costs.cvar(0.1)), rel=1e-8
        )
        assert any(name in text and "minutes" in text for text in told["words"][1])
    chance = told["tables"][told["cases"][1][2]["table"]]
    place = [each["name"] for each in told["scene"]["places"]].index("home")
    assert chance["decisions"][place] == [[0, 1]], "of a mixed decision the likeliest is drawn"
    assert told["predicted"][1][:1] == [None] and told["predicted"][1][6] == pytest.approx(
        mine["planner"].cvar(0.1)
    )


def test_words_round_halves_as_the_table_does():
    """Of 142.5 JavaScript makes 143; `tests/browser` looks at the table."""
    rows = [("home", "road", "work", 0.9, 10), ("home", "road", "work", 0.1, 172.5)]
    ssp = tp.SSP.from_outcomes([*rows, ("home", "train", "work", 1, 30)], "home", ["work"])
    told = data_of(tp.page(ssp, policies={"mine": {"home": "road"}}, alphas=[0.1]).html)
    assert [case["above"] for case in told["cases"][0]] == [142.5, 142.5, 0]
    assert "costs 30 there: 143 less." in told["words"][0][0]
    assert told["words"][0][-1].endswith("172.5 in its worst 10 %: 143 above the optimum.")


def test_a_policy_that_never_arrives_has_a_page():
    ssp = tp.SSP.from_outcomes([("a", "go", "b", 1, 1), ("a", "turn", "a", 1, 1)], "a", ["b"])
    made = tp.page(ssp, policies={"stubborn": {"a": "turn"}}, alphas=[0.5])
    told = data_of(made.html)
    assert told["cases"][0][1]["cvar"] is None and told["cases"][0][1]["above"] is None
    words = "The policy stubborn misses the goal with probability 1, so its mean and its CVaR are"
    assert any(text.startswith(words) for text in told["words"][0])


def test_tails_are_told_as_far_as_runs_arrive():
    """The rest, which never arrives, would make the picture a thousand times as wide."""
    rows = [("a", "go", "b", 0.5, 1), ("a", "go", "pit", 0.25, 1), ("a", "go", "a", 0.25, 1)]
    rows += [("a", "walk", "b", 1, 9), ("pit", "stay", "pit", 1, 1), ("pit", "climb", "b", 1, 50)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["b"])
    told = data_of(tp.page(ssp, policies={"mine": {"a": "go", "pit": "stay"}}, alphas=[0.01]).html)
    mine = told["cases"][0][1]
    assert mine["costs"][:4] == [1, 2, 3, 4] and mine["costs"][-1] < 15
    assert mine["tails"][-1] == pytest.approx(1 / 3, abs=1e-4)


def test_a_notebook_shows_the_page():
    made = tp.page(roads(), alphas=[0.1], title="It's <here>")
    shown = made._repr_html_()
    assert (
        shown.startswith("<iframe srcdoc='")
        and "It&#x27;s &lt;here&gt;" in shown
        and "<script" not in shown
    )
    assert repr(made).startswith('<Page "It\'s <here>", 0.0')


def test_refusals():
    with pytest.raises(
        OptionError,
        match="two policies of the page would be called 'optimal': give yours another name",
    ):
        tp.page(roads(), policies={"optimal": {"home": "road"}})
    with pytest.raises(OptionError, match=r"x\.pdf: a page is a file that ends with \.html"):
        tp.page(roads(), "x.pdf")
    with pytest.raises(FormatError, match=r"no/x\.html: no such file or folder"):
        tp.page(roads(), "no/x.html")
    with pytest.raises(OptionError, match="at least one alpha"):
        tp.page(roads(), alphas=[])
    with pytest.raises(PolicyError, match="'home'"):
        tp.page(roads(), policies={"mine": {"home": "boat"}})


# ---------------------------------------------------------------------- where states stand

SHED = [
    ("home", "motorway", "junction", 0.8, 12),
    ("home", "motorway", "junction", 0.2, 35),
    ("home", "B203", "village", 1.0, 20),
    ("junction", "on", "work", 1.0, 10),
    ("village", "on", "work", 1.0, 18),
    ("shed", "path", "home", 1.0, 3),
]


def shed() -> tp.SSP:
    return tp.SSP.from_outcomes(SHED, "home", ["work"])


def test_a_graph_shows_what_runs_come_to_and_lists_the_rest():
    scene = data_of(tp.page(shed()).html)["scene"]
    names = [place["name"] for place in scene["places"]]
    assert sorted(names) == ["home", "junction", "village", "work"]
    assert scene["others"] == ["shed"] and scene["unmet"] == 1


def test_states_that_are_not_drawn_are_not_said_to_be_unmet(monkeypatch):
    """Of a large graph only the states that matter most are drawn."""
    monkeypatch.setattr("tailpath.show.page.data.MAX_NODES", 3)
    monkeypatch.setattr("tailpath.show.page.data.MAX_MET", 2)
    scene = data_of(tp.page(shed()).html)["scene"]
    assert scene["kind"] == "part" and len(scene["places"]) < 4 and scene["unmet"] == 1


def places(**options) -> dict[str, tuple[float, float]]:
    scene = data_of(tp.page(shed(), **options).html)["scene"]
    for place in scene["places"]:
        assert 0 < place["x"] < scene["width"] and 0 < place["y"] < scene["height"]
    return {place["name"]: (place["x"], place["y"]) for place in scene["places"]}


AT = {"home": (0, 0), "junction": (1, 2), "village": (2, -1), "work": (4, 0)}


def test_states_stand_where_they_are_said_to():
    found = places(positions=AT)
    origin, scale = found["home"], (found["work"][0] - found["home"][0]) / 4
    for name, (x, y) in AT.items():
        assert found[name][0] - origin[0] == pytest.approx(scale * x)
        assert found[name][1] - origin[1] == pytest.approx(-scale * y), "north is up"


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_table_of_places_is_read(mark, tmp_path):
    text = "place;x;y\n" + "\n".join(f"{name};{x}.5;{y}" for name, (x, y) in AT.items())
    text = text.replace(";", ",") if mark == "," else text.replace(".", ",")
    (tmp_path / "places.csv").write_text(text)
    found = places(positions=tmp_path / "places.csv")
    wanted = places(positions=AT)
    assert all(found[name] == pytest.approx(wanted[name]) for name in wanted)
    columns = {"name": list(AT), "x": [x for x, _ in AT.values()], "y": [y for _, y in AT.values()]}
    again = places(positions=columns)
    assert all(again[name] == pytest.approx(wanted[name]) for name in wanted)


def test_degrees_look_as_in_the_middle_of_the_map():
    rows = {"state": ["home", "work"], "lat": [60, 60.1], "lon": [10, 10.4]}
    found = places(positions=rows)
    across, down = (found["work"][k] - found["home"][k] for k in (0, 1))
    assert across / -down == pytest.approx(0.4 * 0.5 / 0.1, rel=2e-3)
    middle = [sum(found[name][k] for name in ("home", "work")) / 2 for k in (0, 1)]
    assert found["village"] == pytest.approx(middle), "between its neighbours"


def test_positions_that_help_nobody_are_refused():
    with pytest.raises(OptionError, match="name no state"):
        tp.page(shed(), positions={"nowhere": (1, 2)})
    with pytest.raises(OptionError, match="x and y, or lon and lat; there are place, x"):
        tp.page(shed(), positions={"place": ["home"], "x": [3]})
    with pytest.raises(OptionError, match="positions are numbers, not 'far'"):
        tp.page(shed(), positions={"place": ["home"], "x": ["far"], "y": [3]})
    with pytest.raises(OptionError, match="positions are numbers, not inf"):
        tp.page(shed(), positions={"home": (float("inf"), 1)})
    with pytest.raises(OptionError, match=r"positions are pairs \(x, y\), not 3"):
        tp.page(shed(), positions={"home": 3})
    with pytest.raises(OptionError, match="a mapping, a table or a path, not 3"):
        tp.page(shed(), positions=3)
