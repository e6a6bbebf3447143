import io
import sys
import types

import pytest

import tailpath as tp
from tailpath.pictures import progress


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
    clock = iter([100.0, 100.0, 100.01, 100.2, 100.2])
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

    def update(self, shown, raw):
        self.texts.append(shown["text/plain"])


def test_a_notebook_sees_one_line_that_goes_away(monkeypatch):
    line = Line()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=Shell))
    monkeypatch.setitem(
        sys.modules,
        "IPython.display",
        types.SimpleNamespace(display=lambda shown, raw, display_id: line),
    )
    with tp.show_progress("solving", pause=0) as shown:
        tp.solve_cvar_exact(tp.domains.gridworld("5x5"), 0.1, progress=shown)
    assert line.texts[0].startswith("solving: ") and " steps, at " in line.texts[0]
    assert line.texts[-1] == ""


def test_without_a_kernel_there_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=None))
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with tp.show_progress() as shown:
        shown(1, 0.5)
    assert log.getvalue() == ""
