"""What a newcomer meets first: no arguments, a typing mistake, a narrow terminal, completion, a
package that is not there.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from click.shell_completion import BashComplete

import tailpath as tp
from tailpath.cli import main
from tailpath.cli.application import COMMANDS, group
from tests.cli.running import refusal, run


def test_alone_it_shows_its_help(capsys):
    alone, asked = run(capsys), run(capsys, "--help")
    assert (alone.code, alone.err) == (0, "")
    assert alone.out.strip() == asked.out.strip()
    assert all(command in alone.out for command in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("compre", "compare"), ("evalute", "evaluate"), ("sovle", "solve"), ("infos", "info")],
)
def test_a_typing_mistake_is_understood(capsys, typed, meant):
    assert (
        refusal(capsys, typed, "x")
        == f"No such command {typed!r}; did you mean {meant!r}? (see 'tailpath --help')"
    )


def completions(*words):
    completer = BashComplete(group, {}, "tailpath", "_TAILPATH_COMPLETE")
    return [
        (item.type, item.value) for item in completer.get_completions(list(words[:-1]), words[-1])
    ]


def test_the_shell_completes_commands_options_and_files():
    assert ("plain", "compare") in completions("com")
    assert completions("info", "roa") == [("file", "roa")]
    assert completions("evaluate", "river:5x5", "p") == [("file", "p")]
    assert completions("solve", "river:5x5", "--verif") == [("plain", "--verify")]


def asked_in_bash(folder, *words):
    """What Bash would put in the place of the last word; it splits words at colons by itself."""
    program = folder / "tailpath"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tailpath "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = f"""
        source <(_TAILPATH_COMPLETE=bash_source tailpath)
        compopt() {{ :; }}
        COMP_WORDS=(tailpath {" ".join(words)}); COMP_CWORD={len(words)}
        _tailpath_completion tailpath
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PATH": f"{folder}:{os.environ['PATH']}",
    }
    told = subprocess.run(
        [shutil.which("bash"), "-c", script],
        capture_output=True,
        text=True,
        env=settings,
        check=True,
    )
    return told.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_real_bash_completes_commands_and_options(tmp_path):
    assert asked_in_bash(tmp_path, "expl") == ["explain"]
    assert asked_in_bash(tmp_path, "solve", "river", ":", "5x5", "--verif") == ["--verify"]


@pytest.mark.parametrize(
    "suffix", ["json", "npz", "drn", "tra", "umb", "csv", "parquet", "prism", "jani"]
)
def test_a_missing_file_is_no_such_file(capsys, tmp_path, suffix):
    assert "no such file" in refusal(capsys, "info", tmp_path / f"none.{suffix}")


def test_only_what_is_really_compiled_counts():
    """In a child, with an empty cache and then with a full one."""
    program = (
        "from tailpath.kernels.compile_time import compiling_seconds\n"
        "import numpy as np; from tailpath.kernels.shortest_paths import dijkstra\n"
        "least = np.full(2, np.inf); dijkstra(np.array([0, 0, 1]),"
        " np.array([0], dtype=np.int32), np.ones(1), 1, least)\nassert least.tolist() == [1.0,"
        " 0.0]; print(compiling_seconds() > 0)"
    )
    with tempfile.TemporaryDirectory() as cache:
        runs = [
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "NUMBA_CACHE_DIR": cache, "TAILPATH_COMPILE": "1"},
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
    assert [run.stdout.split() for run in runs] == [["True"], ["False"]]


@pytest.mark.parametrize(
    "words",
    [("compare", "river:5x5"), ("explain", "river:5x5", "expected", "--alpha", "0.05")],
)
def test_results_fit_a_narrow_terminal(capsys, monkeypatch, words):
    """In a pipe nothing is cut, whatever COLUMNS says."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    wide = run(capsys, *words).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    narrow = run(capsys, *words).out
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, wide.splitlines()))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_and_warnings_have_lines_of_their_own():
    """On a terminal a line of progress makes way for a warning."""
    words = "solve river:5x5 --method quantile --max-sweeps 1 --alpha 0.05"
    terminal, end = os.openpty()
    at_once = "from tailpath import progress; progress.AFTER = 0.0; from tailpath.cli import main"
    command = [sys.executable, "-c", f"{at_once}; main()", *words.split()]
    process = subprocess.Popen(command, stdout=end, stderr=end)
    os.close(end)
    said = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while more := os.read(terminal, 1000):
            said += more
    os.close(terminal)
    assert process.wait() == 0
    assert b"sweep 1, residual" in said, "there was progress"
    seen = [line.rpartition("\x1b[K")[2] for line in said.decode().split("\n")]
    (warning,) = (line for line in seen if "no convergence within 1 sweep:" in line)
    assert warning.startswith("tailpath: warning: ")


def test_alphas_may_be_lists_everywhere():
    ssp = tp.domains.river(rows=6, columns=4)
    alphas = [0.5, 0.1]
    best, costs = tp.solve_cvar_exact(ssp, 0.1), tp.evaluate(ssp, tp.solve_expected(ssp), 0.1)
    plan = tp.solve_cvar_quantile(ssp, tp.log_atoms(0.01, 5))
    for method in (best.cvar, best.var, best.mean, costs.cvar, costs.var, plan.cvar):
        for given in (alphas, tuple(alphas), np.array(alphas)):
            assert method(given).tolist() == [method(alpha) for alpha in alphas]
    assert costs.bounds(alphas).tolist() == [list(costs.bounds(alpha)) for alpha in alphas]
    assert isinstance(costs.cvar(0.5), float)


def test_results_go_out_as_frames():
    ssp = tp.domains.river(rows=6, columns=4)
    solution = tp.solve_expected(ssp)
    frame = solution.to_pandas()
    assert frame["value"][ssp.start_index] == solution.cost() and list(frame["state"]) == list(
        ssp.states
    )
    costs = tp.evaluate(ssp, solution, 0.1)
    assert costs.to_pandas()["probability"].sum() == pytest.approx(1 - costs.tail_mass)


def test_a_comparison_says_how_much_of_its_time_was_compiling(capsys, monkeypatch):
    clock = iter(range(0, 1000, 100))  # a hundred seconds between two looks
    monkeypatch.setattr("tailpath.cli.common.compiling_seconds", lambda: next(clock))
    told = run(capsys, "compare", "textbook:geometric", "--method", "expected", "--alpha", "0.5")
    assert "the seconds above include 100.0 s of compiling" in told.out


def test_what_solve_says_of_compiling_is_part_of_its_time(capsys, monkeypatch):
    """Only what was compiled for planning: the time is that of planning, too."""
    looks = []

    def clock():
        looks.append(0)
        return 100.0 * len(looks)

    monkeypatch.setattr("tailpath.cli.common.compiling_seconds", clock)
    told = run(capsys, "solve", "textbook:geometric", "--alpha", "0.5")
    assert "of which, once   100.0 s of compiling" in told.out and len(looks) == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["frontier", "river:5x5", "--risk", "cvar(0.1)", "--plot", "nowhere/f.png"],
            "nowhere/f.png: no such file or folder",
        ),
        (
            ["frontier", "river:5x5", "--risk", "cvar(0.1)", "--corner", "1", "-o", "f.txt"],
            "f.txt: the file name must end with .json or .npz",
        ),
        (
            ["page", "river:5x5", "--out", "nowhere/p.html"],
            "nowhere/p.html: no such file or folder",
        ),
    ],
)
def test_what_cannot_be_read_or_written_is_told_at_once(
    capsys, monkeypatch, tmp_path, command, message
):
    monkeypatch.chdir(tmp_path)
    assert message in refusal(capsys, *command)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_a_terminal(monkeypatch, *arguments):
    streams = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    main([*arguments])
    return [stream.getvalue() for stream in streams]


def test_what_is_best_is_bold_and_errors_are_red(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, _ = on_a_terminal(monkeypatch, "compare", "river:5x5", "--alpha", "0.1")
    bold = re.findall(r"\x1b\[1m(.*?)\x1b\[0m", out)
    assert len(bold) == 1 and bold[0].split()[:2] == ["0.1", "optimum"]
    assert all(len(re.sub(r"\x1b\[\d+m", "", line)) <= 80 for line in out.splitlines())
    _, err = on_a_terminal(monkeypatch, "info", "nowhere.json")
    assert "tailpath: \x1b[31m\x1b[1merror:\x1b[0m nowhere.json" in err
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in (("compare", "river:5x5", "--alpha", "0.1"), ("info", "nowhere.json")):
        assert "\x1b[3" not in "".join(on_a_terminal(monkeypatch, *arguments))
        assert "\x1b[1m" not in "".join(on_a_terminal(monkeypatch, *arguments))


def test_a_narrow_terminal_keeps_the_digits(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    found = run(capsys, "compare", "river:30x10", "--alpha", "0.1", "--json").json["rows"]
    out, _ = on_a_terminal(monkeypatch, "compare", "river:30x10", "--alpha", "0.1")
    for row in found:
        assert f"{row['deployed']:.6g}" in out
    assert "no room for seconds" in out
