"""A second process that shares the compiler's work when a command is used for the first time.

The compiler uses one core, and a command meets its kernels one after the other. The helper (`cli/rehearsal.py`) finds out which they will be and
compiles them, large ones first and then from the last to the first, into the same folder; the command finds them there when it comes to
them. The two meet somewhere in the middle: a kernel that the helper has begun is waited for, and one that the command has begun is left to
it. The helper says nothing to the user, and ends when the command does, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

from tailpath.kernels.jit import before_compiling, cores, keeps_code

#: The commands that are rehearsed.
REHEARSED = ("evaluate", "compare", "solve", "simulate", "frontier", "explain", "show", "diff", "page", "warm-up")

#: Seconds after which the helper is thought to stand still; no kernel takes so long.
PATIENCE = 60.0


class Helper:
    """The process, while there is one."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._busy, self._news = "", threading.Condition()

    def start(self, command: str) -> None:
        """Begin, where that can help: there is a core for it, and what it makes can be kept."""
        if command not in REHEARSED or not keeps_code() or cores() < 2 or not sys.executable or getattr(sys, "frozen", False):
            return
        program = [sys.executable, "-P", "-m", "tailpath.cli.rehearsal", command]
        places = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe, silent = subprocess.PIPE, subprocess.DEVNULL
        try:
            self.process = subprocess.Popen(program, env=places, stdin=pipe, stdout=pipe, stderr=silent, text=True)
        except OSError:  # the command can do without
            return
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        before_compiling(self.wait)

    def wait(self, name: str) -> None:
        """Until the helper is not busy with this kernel: to begin anew would take longer. It learns that the command has come to it."""
        if self.process is not None and self.process.stdin is not None:
            with contextlib.suppress(OSError):  # it has ended
                os.write(self.process.stdin.fileno(), f"{name}\n".encode())
        with self._news:
            self._news.wait_for(lambda: self._busy != name, PATIENCE)

    def stop(self) -> None:
        """The command has ended."""
        if self.process is not None:
            before_compiling(str)
            self.process.kill()
            self.process.wait()
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process = None

    def _listen(self, process: subprocess.Popen[str]) -> None:
        """Hear what it is busy with, to its end."""
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._hear(line.strip())
        self._hear("")

    def _hear(self, name: str) -> None:
        with self._news:
            self._busy = name
            self._news.notify_all()
