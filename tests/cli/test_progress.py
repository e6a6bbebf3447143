import io
import sys

import pytest

from tailpath.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_one_line_that_goes_away(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    with pytest.raises(KeyboardInterrupt), progress.progress_line() as report:
        report("sweep 1")
        report("sweep 2")
        raise KeyboardInterrupt
    assert terminal.getvalue() == "\r\x1b[Ksweep 1\r\x1b[Ksweep 2\r\x1b[K"


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
