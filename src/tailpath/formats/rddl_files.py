"""Where problems in RDDL are found, and how they are parsed: by pyRDDLGym, from files or from the
package rddlrepository. Neither is let write beside its own files, or greet."""

from __future__ import annotations

import ast
import os
import re
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from tailpath.errors import FormatError
from tailpath.registers import folder_of, module_of
from tailpath.texts import did_you_mean


def files_of(source: str, location: str) -> tuple[Path, Path]:
    if source.endswith(".rddl"):
        paths = [Path(part) for part in source.split(",")]
        if len(paths) != 2:
            raise FormatError(f"{location}: write domain.rddl,instance.rddl")
        for path in paths:
            if not path.is_file():
                raise FormatError(f"{path}: no such file")
        return paths[0], paths[1]
    name, slash, instance = source.rpartition("/")
    if not slash:
        example = "rddl:Navigation_MDP_ippc2011/1"
        raise FormatError(f"{location}: write a domain and an instance, e.g. {example}")
    known = _repository()
    if name not in known:
        near = did_you_mean(name, known)
        raise FormatError(f"{location}: rddlrepository has no domain {name}{near}")
    folder = known[name]
    path = folder / f"instance{instance}.rddl"
    if not path.is_file():
        stems = (file.stem.removeprefix("instance") for file in folder.glob("instance*.rddl"))
        there = ", ".join(sorted(stems, key=lambda stem: (len(stem), stem)))
        raise FormatError(f"{location}: {name} has the instances {there}, not {instance!r}")
    return folder / "domain.rddl", path


@lru_cache(maxsize=1)
def _repository() -> dict[str, Path]:
    """The folder of every domain by name. The package itself would write a list of them beside its
    files."""
    found = {}
    for path in (folder_of("rddlrepository", "rddl") / "archive").rglob("__init__.py"):
        info = re.search(r"info\s*=\s*(\{.*?\n\})", path.read_text(encoding="utf-8"), re.DOTALL)
        if info and (path.parent / "domain.rddl").is_file():
            entry = ast.literal_eval(info[1])
            name = entry["name"] + (f"_{entry['context']}" if entry.get("context") else "")
            found[name] = path.parent
    return found


def parsed(domain: Path, instance: Path, location: str) -> Any:
    parse = _parser()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what the lexer would skip
            reader = module_of("pyRDDLGym.core.parser.reader", "rddl").RDDLReader(domain, instance)
            parse.lexer._lexer.lineno = 1  # it goes on counting from file to file
            return parse.parse(reader.rddltxt)
    except Exception as error:  # the parser raises what it meets
        text = re.sub(r"\x1b\[[0-9;]*m", "", " ".join(str(error).split()))
        raise FormatError(f"{location}: {text or type(error).__name__}") from None


@lru_cache(maxsize=1)
def _parser() -> Any:
    # pygame, which comes with the package, would greet on standard output.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parser = module_of("pyRDDLGym.core.parser.parser", "rddl").RDDLParser()
        silent = module_of("ply.yacc", "rddl").NullLogger()
        # Its tables take a second, and would be written beside its files.
        parser.build(write_tables=False, debug=False, errorlog=silent)
    return parser
