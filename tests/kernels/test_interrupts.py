"""Ctrl-C while a kernel runs is a KeyboardInterrupt, and the process answers afterwards."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

import tailpath
from tests.long_verbs import VERBS

INTERRUPTS = """
MOMENTS = 10
for name, verb in VERBS.items():
    verb()
    start = time.perf_counter()
    right = verb()
    seconds, inside = time.perf_counter() - start, 0
    times = 1 + int(0.2 / seconds)  # what takes milliseconds is over before a signal comes
    for moment in range(MOMENTS):
        after = times * seconds * (moment + 0.5) / MOMENTS
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            for _ in range(times):
                verb()
            inside -= 1
            time.sleep(60)
        except KeyboardInterrupt:
            inside += 1
        timer.join()
    print(name, inside, verb() == right, flush=True)
"""


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_every_long_verb_can_be_interrupted_at_any_moment():
    told = subprocess.run(
        [sys.executable, "-c", VERBS + INTERRUPTS],
        # The time of a verb is known once nothing is left to compile.
        env=environment() | {"TAILPATH_COMPILE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    lines = [line.rsplit(" ", 2) for line in told.stdout.splitlines()]
    names = {verb for verb, _, _ in lines}
    assert (told.returncode, told.stderr) == (0, "") and len(names) == VERBS.count(": lambda: ")
    # A busy machine may be late with some of the signals, not with most.
    assert all(int(inside) >= 5 and same == "True" for _, inside, same in lines), lines


def test_kernels_return_numbers_and_arrays_alone():
    """The class of a named tuple is Python's: Ctrl-C is raised while numba makes one."""
    folder = pathlib.Path(tailpath.__file__).parent
    allowed = {"int", "float", "bool", "tuple", "Array", "Any", "None", "Ellipsis"}
    found = 0
    for source in sorted(folder.rglob("*.py")):
        tree = ast.parse(source.read_text("utf-8"))
        given = {
            call.args[0].id
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "kernel" and call.args
        }
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and (
                function.name in given
                or any(ast.unparse(mark).startswith("kernel") for mark in function.decorator_list)
            ):
                names = {
                    name.id for name in ast.walk(function.returns) if isinstance(name, ast.Name)
                }
                assert names <= allowed, f"{source.name}: {function.name}"
                found += 1
    assert found > 80


def test_a_notebook_answers_after_an_interrupt(tmp_path):
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    homes = {name: str(tmp_path / name) for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    kernel, client = manager.start_new_kernel(kernel_name="python3", env=environment() | homes)
    try:
        for verb in ("frontier", "solve_cvar_exact"):
            asked = f"{VERBS}\nprint('begins')\nfor _ in range(10**6): VERBS['{verb}']()"
            heard = []

            def listen(message, heard=heard):
                if message["msg_type"] == "stream" and "begins" in message["content"]["text"]:
                    kernel.interrupt_kernel()
                heard.append(message["content"])

            reply = client.execute_interactive(asked, output_hook=listen, timeout=600)
            assert reply["content"]["ename"] == "KeyboardInterrupt", heard
        answer = client.execute_interactive("1 + 1", output_hook=heard.append, timeout=600)
        assert answer["content"]["status"] == "ok"
        assert heard[-2]["content"]["data"]["text/plain"] == "2"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)


COLD = """
import os, signal, threading
import tailpath as tp
ssp = tp.domains.gridworld("5x5")
sent, caught, done = [], 0, False

def interrupt():
    sent.append(True)
    os.kill(os.getpid(), signal.SIGINT)

while not done:
    timer = threading.Timer(0.2, interrupt)
    try:
        timer.start()
        tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
        timer.cancel()
        timer.join()
        done = True
    except KeyboardInterrupt:
        caught += 1
    timer.join()
print(caught, len(sent))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_an_interrupt_while_kernels_compile_is_not_lost(tmp_path):
    """LLVM calls back into Python, where an exception is printed and forgotten."""
    told = subprocess.run(
        [sys.executable, "-c", COLD],
        env=environment() | {"NUMBA_CACHE_DIR": str(tmp_path), "TAILPATH_COMPILE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert (told.returncode, told.stderr) == (0, "")
    caught, sent = map(int, told.stdout.split())
    assert caught == sent > 2


ONCE = """
import signal, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from counting import count_call

def late(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, late)
calls = np.zeros(1)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    count_call(calls)
except TimeoutError:
    print("late", calls[0])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_what_a_handler_raises_is_no_fault_of_the_cache(tmp_path):
    """A TimeoutError is an OSError, as those of files that cannot be written: the kernel was run
    again, on arrays that it had filled.
    """
    (tmp_path / "counting.py").write_text(
        "from tailpath.kernels.jit import kernel\n\n"
        "@kernel\ndef count_call(out_calls):\n    out_calls[0] += 1\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", ONCE, str(tmp_path)],
        env=environment() | {"NUMBA_CACHE_DIR": str(tmp_path), "TAILPATH_COMPILE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert (told.stdout, told.stderr) == ("late 1.0\n", "")
