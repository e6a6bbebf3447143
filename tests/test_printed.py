"""Every value and every output that a page prints is what the program prints: in full digits, or
rounded as it is printed. Figures that are measured (docs/benchmarks.md, the times and counts of
papers/forpecvar/README.md and docs/scale.md) are not compared.
"""

import functools
import pathlib
import re
import shlex
import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import tailpath as tp
from tests.cli.running import run
from tests.printed import agrees, blocks, comparable, run_example, sessions, shows, value_told

ROOT = pathlib.Path(__file__).parents[1]
#: Files that commands read, as the pages show or describe them.
FILES = {
    "roads.csv": "from,action,to,p,time\nhome,highway,work,0.9,20\nhome,highway,work,0.1,60\n"
    "home,back road,work,1,30\n",
    "bets.csv": "from,to,action,p,gain\ns,end,bet,0.5,10\ns,end,bet,0.5,-5\ns,end,pass,1,1\n",
}


# ---------------------------------------------------------------------- models of several pages


@functools.cache
def grid(size="14x16"):
    return tp.domains.gridworld(size)


@functools.cache
def river():
    return tp.domains.river(rows=30, columns=10)


@functools.cache
def optimum(model, alpha=0.001, lexicographic=False):
    return tp.solve_cvar_exact(model, alpha, lexicographic)


@functools.cache
def planner(model, alpha0, atoms=25, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the factors")  # as printed
        return tp.solve_cvar_quantile(model, tp.log_atoms(alpha0, atoms), **options)


def delivered(model, alpha, *grid, **options):
    """The exact CVaR of CVaRVIQ's policy."""
    return tp.evaluate(model, planner(model, *grid, **options).policy(alpha), alpha).cvar(alpha)


def lateness(alpha=0.05):
    """How often the policy with the least CVaR, and the one that is best on average, is late."""
    small = grid("8x9")
    return [
        100 * tp.Late(20)(tp.evaluate(small, policy, 0.001))
        for policy in (optimum(small, alpha).policy(alpha), tp.solve_expected(small).policy)
    ]


def worst_point(size, alpha0, alpha):
    """Predicted, deployed and optimal with 7 atoms."""
    model = grid(size)
    predicted, exact = (
        planner(model, alpha0, 7).cvar(alpha),
        delivered(model, alpha, alpha0, 7),
    )
    return (
        f"predicted {predicted:.2f}, deployed {exact:.2f}, optimal {optimum(model).cvar(alpha):.2f}"
    )


def sampled():
    """A million runs, as the page of evaluation has them."""
    costs = tp.simulate(grid(), tp.solve_expected(grid()).policy, n=1_000_000, seed=1)
    return tp.estimate(costs, 1e-3)


HERE = {
    name: value
    for name, value in globals().items()
    if callable(value) and getattr(value, "__module__", "") == __name__
}

# ---------------------------------------------------------------------- sentences

#: What a page says in its text. Each is an f-string: its values are computed, with the names of the
#: page's own examples and the functions above, and what it makes has to stand on the page.
SENTENCES = {
    "docs/conventions.md": [
        "predict {plan.cvar(0.5):.0f} and deliver {got.cvar(0.5):.0f}, while the optimum is"
        " {tp.solve_cvar_exact(example, 0.5).cvar(0.5):g}",
    ],
    "docs/evaluation.md": [
        "`VaR = {costs.var(0.01):g}`. Beyond it lies a mass of"
        " {costs.tails[costs.costs == 90][0]:g}",
        "/ 0.01 = {costs.cvar(0.01):g}`. The average of {costs.mean:g} minutes",
        "| `evaluate` | {tp.evaluate(grid(), neutral, 1e-3).cvar(1e-3):.8f} |",
        "| `simulate`, a million runs | {sampled().cvar:.2f} |"
        " {(lambda e: e.cvar_interval[1] - e.cvar_interval[0])(sampled()):.2f}, in 95",
    ],
    "docs/first_model.md": [
        "On average the highway is best, with {average.cost():g} minutes. But on the worst 5 %"
        " of days it takes {costs.cvar(0.05):g} minutes.",
        "take the back road: its worst 5 % take {careful.cvar(0.05):g}.",
    ],
    "docs/flights.md": [
        "By the frequencies Newark is better, {100 * tp.evaluate(late, nominal, 0.01).cdf(480):.1f}"
        " % against {100 * tp.evaluate(late, safe.policy(480), 0.01).cdf(480):.1f} %;",
        "The model says {100 * tp.evaluate(noon, waits, 0.01).cdf(660):.1f} % for a passenger",
    ],
    "docs/model.md": ['cost()` is {tp.solve_expected(tp.read("gym:Taxi-v4")).cost():.2f}, minus'],
    "docs/objectives.md": [
        "takes 37 in {100 * tail.risk('late(35)'):.0f} cases out of 100",
        "never thought of risk ({100 * average.risk('late(35)'):.0f} of 100)",
        "It is late in {100 * on_time.risk('late(35)'):.1f} cases out of 100",
        "is late (beyond 20) in {lateness()[0]:.0f} cases out of 100, the one that is best on"
        " average in {lateness()[1]:.1f}.",
        "as it does here at {corners[2].risk:.2f}",
        "cvar(0.05) is at least {tail.value:g}",
    ],
    "docs/optimum.md": [
        "the planner promises {planner(grid(), 1e-3).cvar(1e-3):.1f}, its policy delivers"
        " {delivered(grid(), 1e-3, 1e-3):.1f}, and {optimum(grid()).cvar(1e-3):.1f} is possible.",
        "the best on average ({tp.solve_expected(grid()).cost():.1f})",
        "the same CVaR, {optimum(river()).cvar(1e-3):.3f}, and a mean of"
        " {optimum(river(), 1e-3, True).mean(1e-3):.2f} instead of"
        " {optimum(river()).mean(1e-3):.2f}; at alpha = 0.01 it is"
        " {optimum(river(), 1e-3, True).mean(0.01):.2f} instead of"
        " {optimum(river()).mean(0.01):.2f}.",
    ],
    "docs/planners.md": [
        "with `--variant published` or without | {delivered(river(), 0.01, 1e-3):.3f} |",
        "--variant printed` |"
        " {delivered(river(), 0.01, 1e-3, start='zero', factors='printed'):.3f} |",
    ],
    "docs/rddl.md": [
        "loses the robot in {100 * (1 - arrives(average.policy)):.0f} % of all runs",
        "and arrives in {100 * arrives(careful.policy(0.1)):.0f} %. Without the horizon it could"
        " arrive in {100 * tp.solve_arrival(endless).probability():.0f} %:",
        "| {tp.solve_expected(first).cost() * -1:.3f} |",
        "| {-tp.solve_expected(traffic).cost():.3f} |",
        "| {100 - tp.solve_expected(tires).cost():.2f} |",
    ],
    "docs/seeing.md": [
        "Its worst 1 % of runs cost {worst.cvar:.1f} on average; the way over the bridge always"
        " costs {best_here.cvar(0.01):g}.",
    ],
    "docs/tutorials/sepsis.md": [
        "lets one patient in {1 / (deaths(least[0.05]) - deaths(costs['surest'])):.0f} die who",
        "below an alpha of {deaths(costs['surest']):.3f}, the least chance to die",
        "{tp.solve_arrival(ward).probability():.3f} is the best *in this model*",
    ],
    "papers/forpecvar/README.md": [
        "alpha = alpha0 = 1e-3: {worst_point('8x9', 1e-3, 1e-3)}.",
        "alpha = 0.032: {worst_point('5x5', 1e-3, tp.log_atoms(1e-3, 7)[3])}.",
        "at 0.1 is {delivered(grid(), 0.1, 0.1):.2f} with alpha0 = 0.1,"
        " {delivered(grid(), 0.1, 0.01):.2f} with 0.01 and {delivered(grid(), 0.1, 1e-3):.2f} with"
        " 0.001, all within 0.6 % of the optimum {optimum(grid()).cvar(0.1):.2f}:",
        "optimum {optimum(river()).cvar(0.01):.3f} | alpha0",
        "CVaRVILI | {delivered(river(), 0.01, 1e-3):.3f} | {delivered(river(), 0.01, 1e-2):.3f} |",
        "printed | {delivered(river(), 0.01, 1e-3, start='zero', factors='printed'):.3f} |"
        " {delivered(river(), 0.01, 1e-2, start='zero', factors='printed'):.3f} |",
        "{delivered(river(), 0.01, 1e-3, 49):.2f} against {delivered(river(), 0.01, 1e-2, 49):.2f}",
    ],
    "docs/uncertain.md": [
        "expects {nominal.cvar(0.5):.1f} minutes in the worse half of all days, but given the"
        " counts it may be {band.cvar(0.5)[1]:.1f}.",
        "takes the train: {safe.cvar(0.5):.1f} at most.",
    ],
    "docs/tutorials/gymnasium.md": [
        "so {setbacks.idxmax()} is the cell just above the goal",
        "{'A surprise' if any(len(run.surprises) for run in runs) else 'No surprises'}: the model"
        " is the environment.",
    ],
    "docs/tutorials/roads.md": ["what is left of its {rows[0].memory.split()[0]} minutes"],
}
#: Definitions for the sentences of a page that its examples do not make.
BEFORE = {
    "docs/conventions.md": "example = tp.domains.textbook.counter_example()\n"
    "plan = tp.solve_cvar_quantile(example, [0.0625, 0.125, 0.25, 0.5, 1.0])\n"
    "got = tp.evaluate(example, plan.policy(0.5), 0.5)",
    "docs/evaluation.md": "neutral = tp.solve_expected(grid()).policy",
    "docs/seeing.md": "best_here = tp.solve_cvar_exact(ssp, 0.01)",
}
NEEDS = {
    "docs/bring_your_own.md": ("gymnasium", "gym"),
    "docs/model.md": ("gymnasium", "gym"),
    "docs/tutorials/gymnasium.md": ("gymnasium", "gym"),
    "docs/tutorials/agent.md": ("gymnasium", "gym"),
}
#: Pages whose examples run from top to bottom. Pages of formats and CONTRIBUTING.md have tests of
#: their own, docs/scale.md needs several processes and workers.
EXAMPLES = [
    "README.md",
    *("docs/" + name + ".md" for name in (
        "first_model", "for_a_paper", "model", "domains", "optimum", "evaluation", "planners",
        "seeing", "bring_your_own", "time_of_day", "objectives", "uncertain", "flights", "rddl",
        "tail_risk",
    )),
    *(f"docs/tutorials/{path.name}" for path in sorted((ROOT / "docs/tutorials").glob("*.md"))),
    "papers/forpecvar/errata.md", "cases/README.md",
]  # fmt: skip


#: Pages whose silent commands run elsewhere, take workers, or name files only as an example.
ELSEWHERE = ("docs/rddl.md", "papers/forpecvar/README.md")


def silent_commands(page):
    """The commands `$ tailpath ...` of a page that are shown without an output."""
    shown = {session.command for session in sessions(page)}
    every = re.findall(r"^\$ (tailpath .*)$", page, re.MULTILINE)
    return [command for command in every if command.partition("  #")[0].strip() not in shown]


def page_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def marked(name):
    package, extra = NEEDS.get(name, ("", ""))
    return pytest.param(name, marks=pytest.mark.needs(package, extra=extra) if package else ())


@pytest.mark.parametrize("name", [marked(name) for name in sorted({*EXAMPLES, *SENTENCES})])
def test_examples_do_what_the_page_says(name, tmp_path, monkeypatch, capsys):
    """They run; the values of their comments, what they print and what the text says is so. So do
    the commands that are shown without an output, with the files that the page makes.
    """
    matplotlib.use("agg")
    monkeypatch.syspath_prepend(ROOT)  # for examples/
    monkeypatch.chdir(tmp_path)  # some write files
    for file, text in FILES.items():
        pathlib.Path(file).write_text(text, encoding="utf-8")
    scope, printed, ran = {"tp": tp, "np": np}, "", 0
    if name in EXAMPLES:
        for block in blocks(page_of(name)):
            if block.language == "python" or block.language.startswith("{code-cell}"):
                code = re.sub(r"\A(?::[^\n]*\n)+|\A---\n.*?\n---\n", "", block.text, flags=re.S)
                printed, ran = run_example(code, name, scope), ran + 1
            elif block.follows and printed and not block.language:
                assert comparable(block.text) == comparable(printed)
        assert ran
    scope = {**HERE, **scope}
    exec(BEFORE.get(name, ""), scope)
    text = " ".join(page_of(name).split())
    for sentence in SENTENCES.get(name, ()):
        said = eval("f" + repr(sentence), scope)
        assert said in text, said
    plt.close("all")
    for command in silent_commands(page_of(name)) if name not in ELSEWHERE else ():
        found = run(capsys, *shlex.split(command, comments=True)[1:])
        assert found.code == 0, f"{command}: {found.err}"


# ---------------------------------------------------------------------- commands

PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
]
SESSIONS = [(name, *session) for name in PAGES for session in sessions(page_of(name))]


@pytest.mark.parametrize(("page", "command", "output"), SESSIONS, ids=lambda text: text[:60])
def test_commands_print_what_the_page_shows(page, command, output, tmp_path, monkeypatch, capsys):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if command == "make run":  # and a second model, which is not shown
        command = "tailpath compare river:30x10"
    program, *words = shlex.split(command)
    assert program == "tailpath", "no other program's output is shown"
    found = run(capsys, *words)
    assert found.code == 0, found.err
    assert shows(comparable(output), comparable(found.out)), comparable(found.out)


def test_there_are_outputs_to_compare():
    assert len(SESSIONS) >= 6


# ---------------------------------------------------------------------- the rules themselves


@pytest.mark.parametrize(
    ("comment", "found", "right"),
    [
        ("30.1946", 30.19458, True),
        ("30.1946", 30.195, False),
        ("0.3333336512247721", 0.3333336512247721, True),
        ("0.33333365", 0.3333336512247721, True),
        ("0.33333364", 0.3333336512247721, False),
        ("1.3333333333333333", 4 / 3, True),
        ("-60.0: fishing wins 60 on average", -60.0, True),
        ("-60.0: fishing wins 60 on average", -61.0, False),
        ("38, 63", (38, 63.1), False),
        ("38, 63", (38, 63), True),
        ("38, 63", [38], False),
        ("inf", float("inf"), True),
        ("inf", 1.0, False),
        ("('highway', 24.0)", ("highway", 24.0), True),
        ("('highway', 24.0)", ("highway", 24.1), False),
        ("'back road'", "back road", True),
        ("'back road'", "highway", False),
    ],
)
def test_values_are_compared_by_the_digits_they_show(comment, found, right):
    (told,) = value_told(comment)
    assert agrees(told, found) is right


def test_prose_is_no_value():
    assert value_told("a low and a high that surely enclose the CVaR") is None


def test_outputs_are_compared_without_times():
    table = "method  mean  seconds\n------  ----  -------\nfast       1     {}\n\nplanned in {} s"
    assert comparable(table.format("0.5", "2")) == comparable(table.format("3.1", "1e-05"))
    assert "fast 1" in comparable(table.format("0.5", "2"))
    other = comparable(table.format("0.5", "2").replace("  1 ", "  2 "))
    assert other != comparable(table.format("0.5", "2"))
    assert shows("a\n...\nd", "a\nb\nc\nd") and not shows("a\n...\nd", "a\nb\nc")
    assert shows("a\nb", "a\nb") and not shows("a", "a\nb") and not shows("b", "a\nb")
