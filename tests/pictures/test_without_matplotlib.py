"""Without matplotlib everything but pictures works, and these say what to install."""

import subprocess
import sys

import pytest

LINE = "the package matplotlib is not installed: pip install 'tailpath[plot]'"
BLOCKED = "import sys; sys.modules['matplotlib'] = None\n"
COMMAND = f"{BLOCKED}from tailpath.cli import main; sys.exit(main())"
ROADS = """
import tailpath as tp
ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20), ("home", "road", "work", 0.1, 60),
                            ("home", "train", "work", 1, 30)], "home", ["work"])
best = tp.solve_cvar_exact(ssp, 0.05)
"""


def python(code, *arguments, folder):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=300,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "solve textbook:lottery --alpha 0.1 -o policy.json",
        "evaluate textbook:lottery expected --alpha 0.1",
        "compare textbook:lottery --alpha 0.1",
        "page textbook:lottery --out page.html --alpha 0.5",
    ],
)
def test_commands_need_no_extra(tmp_path, arguments):
    found = python(COMMAND, *arguments.split(), folder=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        "compare river:5x5 --alpha 0.1 --plot x.png",
        "evaluate river:5x5 expected --alpha 0.1 --plot x.svg",
        "frontier river:5x5 --risk cvar(0.1) --plot x.pdf",
    ],
)
def test_pictures_say_what_to_install_before_the_work(tmp_path, arguments):
    found = python(COMMAND, *arguments.split(), folder=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("tailpath: error: ") and found.stderr.count("\n") == 1
    assert LINE in found.stderr
    assert not list(tmp_path.iterdir())


def test_a_plot_says_what_to_install(tmp_path):
    asked = f"""{BLOCKED}{ROADS}
costs = tp.evaluate(ssp, {{"home": "road"}}, 0.05)
for plot in (costs.plot, tp.frontier(ssp, tp.CVaR(0.1)).plot, lambda: best.policy(0.05).plot(ssp)):
    try:
        plot()
    except tp.TailpathError as error:
        print(error)
"""
    found = python(asked, folder=tmp_path)
    assert found.stdout == f"{LINE}\n" * 3, found.stderr


def test_notebooks_show_tables_without_pictures(tmp_path):
    asked = f"""{BLOCKED}{ROADS}
for each in (ssp, best, best.policy(0.05), tp.evaluate(ssp, {{"home": "road"}}, 0.05)):
    shown = each._repr_html_()
    assert "<table>" in shown and "<img" not in shown, shown
"""
    assert python(asked, folder=tmp_path).returncode == 0
