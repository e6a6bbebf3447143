"""A child of a fork does not wait for threads that only its parent has."""

import multiprocessing
import os
import subprocess
import sys
import threading
from functools import cached_property

import pytest

from tailpath.model import ssp
from tailpath.model.records import Record, found_once

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
begun, go_on = threading.Event(), threading.Event()


class Slow(Record):
    @cached_property
    def cached(self):
        return self.wait()

    @found_once
    def found(self):
        return self.wait()

    def wait(self):
        begun.set()
        go_on.wait(60)
        return 1


Slow.__module__ = "tailpath.slow"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("ask", ["cached", "found"])
def test_a_fork_while_a_thread_finds_out(monkeypatch, ask):
    noun = Slow()
    monkeypatch.setattr(ssp, "Slow", Slow, raising=False)  # a class of ours

    def find():
        value = getattr(noun, ask)
        return value() if callable(value) else value

    begun.clear()
    go_on.clear()
    thread = threading.Thread(target=find)
    thread.start()
    begun.wait(60)

    def in_the_child():
        go_on.set()
        os._exit(find())

    child = multiprocessing.get_context("fork").Process(target=in_the_child)
    child.start()
    child.join(20)
    hangs = child.is_alive()
    child.kill()
    go_on.set()
    thread.join()
    assert not hangs and child.exitcode == 1


COMPILING = """
import os, signal, sys, threading, time
from numba.core.compiler_lock import global_compiler_lock
from tailpath.kernels import jit, quantile

def compile():
    with jit._LOCK, global_compiler_lock:
        begun.set()
        time.sleep(1)

begun = threading.Event()
threading.Thread(target=compile).start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    jit.KERNELS[0]._compile()
    with global_compiler_lock:
        os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_fork_while_a_thread_compiles():
    done = subprocess.run([sys.executable, "-c", COMPILING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
