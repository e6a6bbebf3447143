"""Run the command line inside the test's process, and look at what a shell would see."""

import json
from dataclasses import dataclass
from typing import Any

from tailpath.cli import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(constant):
            raise ValueError(f"{constant} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


def run(capsys, *arguments: Any) -> Run:
    """The exit code and both outputs of `tailpath ARGUMENTS`."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return Run(code, *capsys.readouterr())


def refusal(capsys, *arguments: Any) -> str:
    """The one line that a bad command line earns."""
    result = run(capsys, *arguments)
    assert (result.code, result.out) == (2, ""), result
    assert result.err.startswith("tailpath: error: "), result.err
    assert result.err.endswith("\n"), result.err
    assert result.err.count("\n") == 1, result.err
    return result.err[len("tailpath: error: ") : -1]
