"""What happens around every command: help, refusals, warnings, interruption, closed pipes, and what
is not imported.
"""

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import warnings
from fractions import Fraction

import click
import numpy as np
import pytest

import tailpath
from tailpath.cli import application, common, output
from tailpath.errors import TailpathError, TailpathWarning
from tests.cli.running import refusal, run

ROADS = """from,action,to,p,time
home,highway,work,0.9,20
home,highway,work,0.1,60
home,back road,work,1,30
"""
HEAVY = ("numba", "scipy", "matplotlib", "rich", "highspy")


def in_a_shell(
    *arguments, code="from tailpath.cli import main; import sys; sys.exit(main())", **options
):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def test_help_lists_the_commands(capsys):
    result = run(capsys, "--help")
    assert (result.code, result.err) == (0, "")
    for name in ("info", "solve", "convert", "warm-up"):
        assert f"\n  {name} " in result.out
    assert "Costs are minimised" in result.out


def test_version(capsys):
    assert run(capsys, "--version").out == f"tailpath {tailpath.__version__}\n"


def test_every_listed_command_has_help(capsys):
    for name in application.group.list_commands(click.Context(application.group)):
        result = run(capsys, name, "--help")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: tailpath {name}")


def commands():
    context = click.Context(application.group)
    return {name: application.group.get_command(context, name) for name in application.COMMANDS}


def test_help_has_headings_and_two_examples(capsys):
    for name in commands():
        shown = run(capsys, name, "--help").out
        told = shown.partition("\nExamples:\n")[2].splitlines()
        assert len(told) == 2 and f"tailpath {name}" in told[0]
        assert "\nOptions:\n" in shown
    shown = run(capsys, "solve", "--help").out
    for heading in ("Measures and limits", "With --method exact", "On ranks of MPI", "Output"):
        assert f"\n{heading}:\n" in shown


def test_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roads.csv").write_text(ROADS)
    heavy = ("mpiexec", "NUMBA", "tailpath warm-up", "tailpath study", "tailpath report")
    examples = [line for command in commands().values() for line in command.examples]
    for line in sorted(examples, key=lambda line: "--output policy.json" not in line):
        if not line.startswith(heavy):
            assert run(capsys, *shlex.split(line)[1:]).code == 0, line


def test_an_unknown_command(capsys):
    assert refusal(capsys, "nonesuch") == "No such command 'nonesuch' (see 'tailpath --help')"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["info", "river:10x3"],
        ["info", "textbook:lottery", "--json"],
        ["solve", "--help"],
    ],
)
def test_light_commands_import_no_heavy_library(arguments):
    code = f"""
        import sys
        from tailpath.cli import main
        code = main()
        print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
        sys.exit(code)
    """
    result = in_a_shell(*arguments, code=textwrap.dedent(code))
    assert (result.returncode, result.stderr) == (0, "[]\n")


def test_help_does_without_numpy():
    result = in_a_shell(
        "--help",
        code="import sys; from tailpath.cli import main; main(); sys.exit('numpy' in sys.modules)",
    )
    assert result.returncode == 0


def test_the_module_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "tailpath", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (result.returncode, result.stdout) == (0, f"tailpath {tailpath.__version__}\n")


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["xyzzy"], "No such command 'xyzzy' (see 'tailpath --help')"),
        (["info"], "Missing argument 'MODEL' (see 'tailpath info --help')"),
        (
            ["info", "river:10x3", "more"],
            "Got unexpected extra argument (more) (see 'tailpath info --help')",
        ),
        (["info", "river:10x3", "--cost-of", "3"], "'3' is not of the form R=C"),
        (["info", "river:10x3", "--cost-of", "a=b"], "'a' is not a number"),
        (["info", "river:10x3", "--const", "N"], "'N' is not of the form N=V"),
        (["info", "river:10x3", "--step-cost", "much"], "'much' is not a valid float"),
        (["info", "textbook:nonesuch"], "nonesuch"),
        (["info", "gridworld:6x6"], "6x6"),
        (["info", "river:1x5"], "rows"),
        (["info", "nothing.here"], "nothing.here"),
    ],
)
def test_bad_arguments_are_one_line(capsys, arguments, message):
    assert message in refusal(capsys, *arguments)


def test_a_wrong_flag(capsys):
    assert refusal(capsys, "info", "--wrong").startswith("No such option")


def test_files_that_cannot_be_read(capsys, tmp_path):
    assert "missing.json" in refusal(capsys, "info", tmp_path / "missing.json")
    (tmp_path / "folder.json").mkdir()
    assert "folder.json" in refusal(capsys, "info", tmp_path / "folder.json")
    (tmp_path / "rubbish.json").write_text("{")
    assert "rubbish.json" in refusal(capsys, "info", tmp_path / "rubbish.json")
    (tmp_path / "rubbish.npz").write_bytes(b"\x00\x01\x02")
    assert "rubbish.npz" in refusal(capsys, "info", tmp_path / "rubbish.npz")


def command_that(monkeypatch, action):
    """Make `tailpath info` do something else."""
    from tailpath.cli import models

    monkeypatch.setattr(models, "info_command", click.Command("info", callback=action))


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (TailpathError("one\nthing  and another"), 2, "tailpath: error: one thing and another\n"),
        (
            FileNotFoundError(2, "No such file or directory", "a.bin"),
            2,
            "tailpath: error: a.bin: No such file or directory\n",
        ),
        (
            PermissionError(13, "Permission denied", b"b.bin"),
            2,
            "tailpath: error: b.bin: Permission denied\n",
        ),
        (
            MemoryError("Unable to allocate 9 TiB"),
            2,
            "tailpath: error: not enough memory: Unable to allocate 9 TiB\n",
        ),
    ],
)
def test_errors_of_the_user_are_one_line(capsys, monkeypatch, error, code, line):
    command_that(monkeypatch, raising(error))
    result = run(capsys, "info")
    assert (result.code, result.err) == (code, line)


def test_an_interrupt_is_130(capsys, monkeypatch):
    command_that(monkeypatch, raising(KeyboardInterrupt()))
    result = run(capsys, "info")
    assert (result.code, result.err.strip()) == (130, "tailpath: error: interrupted")


def test_errors_of_ours_keep_their_traceback(capsys, monkeypatch):
    command_that(monkeypatch, raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        run(capsys, "info")


def test_warnings_are_one_line(capsys, monkeypatch):
    command_that(
        monkeypatch, lambda: warnings.warn("rows were\nscaled", TailpathWarning, stacklevel=1)
    )
    result = run(capsys, "info")
    assert (result.code, result.err) == (0, "tailpath: warning: rows were scaled\n")


def test_a_warning_is_shown_once_by_each_command(capsys, monkeypatch):
    def several():
        for text in ("estimated", "scaled", "estimated"):
            warnings.warn(text, TailpathWarning, stacklevel=1)

    command_that(monkeypatch, several)
    for _ in range(2):
        shown = run(capsys, "info").err
        assert shown == "tailpath: warning: estimated\ntailpath: warning: scaled\n"


@pytest.mark.kill
def test_a_real_interrupt_ends_a_real_process(tmp_path):
    code = """
        import sys, time, click
        from tailpath.cli import main, models
        def wait():
            print("ready", flush=True)
            time.sleep(60)
        models.info_command = click.Command("info", callback=wait)
        sys.exit(main(["info"]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_reader_that_leaves_early_is_no_error():
    code = """
        import sys
        from tailpath.cli import main, models
        import click
        def talk():
            for _ in range(100_000):
                click.echo("line")
        models.info_command = click.Command("info", callback=talk)
        sys.exit(main(["info"]))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "line\n"
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (1, "")


def test_a_reader_that_was_never_there_is_no_error():
    """Little output, which meets the closed pipe only when it is flushed at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        command = [sys.executable, "-m", "tailpath", "info", "river:10x3"]
        result = subprocess.run(
            command,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            env=buffered,
        )
    finally:
        os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


# ---------------------------------------------------------------------- output


def test_json_has_no_infinities():
    record = {
        "inf": math.inf,
        "minus": -math.inf,
        "nan": math.nan,
        "unit": Fraction(1, 2),
        "state": (1, 2),
        "array": np.array([1.0, math.inf]),
        "scalar": np.int64(3),
        "truth": np.bool_(True),
        "none": None,
        (0, 1): "a key",
    }
    assert json.loads(json.dumps(output.json_types(record), allow_nan=False)) == {
        "inf": "inf",
        "minus": "-inf",
        "nan": "nan",
        "unit": "1/2",
        "state": [1, 2],
        "array": [1.0, "inf"],
        "scalar": 3,
        "truth": True,
        "none": None,
        "(0, 1)": "a key",
    }


def test_a_table_for_people():
    text = output.fitted_table(
        ["method", "CVaR", "steps"], [("exact", 30.19512345, 12), ("quantile", None, 7)], digits=5
    )
    assert text.splitlines() == [
        "method      CVaR  steps",
        "--------  ------  -----",
        "exact     30.195     12",
        "quantile       -      7",
    ]


def test_long_lists_are_cut():
    assert output.some(["a", (0, 1)]) == "a, (0, 1)"
    assert output.some(list(range(12)), most=3) == "0, 1, 2, and 9 more"


def test_alpha_is_checked(capsys):
    assert common.ALPHA("0.05") == 0.05
    for wrong in ("0", "-1", "1.01", "nan", "inf", "x", ""):
        with pytest.raises(click.BadParameter):
            common.ALPHA(wrong)


def test_a_command_of_a_package_that_is_missing_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("tailpath.registers.installed", lambda group: {})
    for name in ("study", "report"):
        assert refusal(capsys, name, "--out", "x") == (
            f"the command {name} comes with the package forpecvar, which is not installed:"
            " pip install ./papers/forpecvar in a checkout of tailpath"
        )
    assert "study" not in run(capsys, "--help").out


def test_a_command_that_cannot_be_loaded_does_not_hide_the_others(capsys, monkeypatch):
    addresses = {"odd": "nowhere:odd", "sum": "builtins:sum", "info": "nowhere:info"}
    monkeypatch.setattr("tailpath.registers.installed", lambda group: addresses)
    told = run(capsys, "--help")
    assert (told.code, told.err) == (0, "") and "  evaluate  " in told.out
    assert refusal(capsys, "odd").startswith("the command nowhere:odd of the group tailpath.comma")
    assert refusal(capsys, "sum") == (
        "builtins:sum of the group tailpath.commands is not a click.Command"
    )
    assert "states" in run(capsys, "info", "river:5x5").out  # ours wins
    assert "did you mean 'odd'?" in refusal(capsys, "odds")
