import io
import sys
import types

import pytest

import tailpath as tp
from tailpath import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_that_goes_away(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt), progress.progress_line(pause=0) as report:
        report("sweep 1")
        report("sweep 2")
        raise KeyboardInterrupt
    assert terminal.getvalue() == "\r\x1b[Ksweep 1\r\x1b[Ksweep 2\r\x1b[K"


def test_a_line_ends_where_the_terminal_does(monkeypatch):
    """What goes on below could not be taken back."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(terminal, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr(
        progress.os, "get_terminal_size", lambda _: types.SimpleNamespace(columns=9)
    )
    with progress.progress_line(pause=0) as report:
        report("sweep 1, residual 3")
    assert terminal.getvalue() == "\r\x1b[Ksweep 1,\r\x1b[K"


def test_updates_that_follow_too_soon_are_dropped(monkeypatch):
    terminal = Terminal()
    clock = iter([100.0, 100.0, 100.01, 100.2])
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with progress.progress_line() as report:
        for text in ("first", "too soon", "later"):
            report(text)
    assert terminal.getvalue() == "\r\x1b[Kfirst\r\x1b[Klater\r\x1b[K"


def test_a_file_sees_nothing(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.progress_line() as report:
        report("sweep 1")
    assert log.getvalue() == ""


class Shell:
    """What IPython shows of itself in a notebook."""

    kernel = object()


class Line:
    def __init__(self):
        self.texts = []

    def display(self, shown, raw, display_id):
        self.update(shown, raw)
        return self

    def update(self, shown, raw):
        self.texts.append(shown["text/plain"])


def test_a_notebook_sees_one_line_that_goes_away(monkeypatch):
    line = Line()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=Shell))
    monkeypatch.setitem(
        sys.modules,
        "IPython.display",
        types.SimpleNamespace(display=line.display),
    )
    with tp.show_progress("solving", pause=0) as shown:
        tp.solve_cvar_exact(tp.domains.gridworld("5x5"), 0.1, progress=shown)
    assert any(text.startswith("solving: ") and " steps, at " in text for text in line.texts)
    assert line.texts[-1] == ""


def test_without_a_kernel_there_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=None))
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with tp.show_progress() as shown:
        shown(1, 0.5)
    assert log.getvalue() == ""


# ---------------------------------------------------------------------- by itself


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(progress, "monotonic", lambda: self.now)


def test_what_says_nothing_is_spoken_for_after_two_seconds(monkeypatch):
    terminal, clock = Terminal(), Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress_line("frontier", after=progress.AFTER) as update:
        line = progress._current
        for clock.now in (101.0, 101.9):
            update("1 table")
            line.beat(clock.now)
        assert terminal.getvalue() == "", "what is quick says nothing"
        clock.now = 102.0
        line.beat(clock.now)
        assert terminal.getvalue() == "\r\x1b[K1 table, 2 s"
        clock.now = 102.5
        line.beat(clock.now)
        update("2 tables")
        clock.now = 103.6
        line.beat(clock.now)
    assert terminal.getvalue().split("\r\x1b[K")[2:] == ["2 tables", "2 tables, 4 s", ""]


def test_there_is_one_line_at_a_time(monkeypatch):
    terminal, clock = Terminal(), Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress_line("outer", pause=0) as outer:
        with progress.progress_line("inner") as inner:
            assert inner == outer
        clock.now += 1
        outer("still there")
        with progress.progress_line("inner"):
            progress.end_line()
        outer("too late: a result was printed")
    assert terminal.getvalue() == "\r\x1b[Kstill there\r\x1b[K"


def test_verbs_have_a_line_of_their_own(monkeypatch):
    """Unless they were given somebody to tell."""
    seen = []
    monkeypatch.setattr(sys, "stderr", Terminal())

    def policy(state):
        seen.append(progress._current and progress._current.text)
        return "road"

    rows = [("home", "road", "work", 1, 1), ("home", "rail", "work", 1, 2)]
    ssp = tp.SSP.from_outcomes(rows, "home", ["work"])
    tp.evaluate(ssp, policy, 0.1)
    assert set(seen) == {"evaluate"} and progress._current is None
    seen.clear()
    tp.evaluate(ssp, policy, 0.1, progress=lambda steps, reached: None)
    assert set(seen) == {None}
