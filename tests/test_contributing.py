"""The examples of CONTRIBUTING.md work, as the project of somebody else: a folder, installed, in a
process of its own.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:^`([\w.]+)`:\n)?^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_examples_run(tmp_path):
    script = []
    for name, code in BLOCK.findall(PAGE):
        if name:
            (tmp_path / name).write_text(code, encoding="utf-8")
        else:
            script.append(code)
    assert len(script) == 4 and (tmp_path / "edges.py").exists()
    tables = "".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    install(tmp_path, tomllib.loads(tables)["project"]["entry-points"])
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    settings = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": paths}, "timeout": 600}
    told = []
    for arguments in (
        ["-c", "\n".join(script)],
        ["-m", "tailpath", "sizes", "river:5x5", "--json"],
        ["-m", "tailpath", "--help"],
    ):
        child = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=False, **settings
        )
        assert child.returncode == 0, child.stderr
        told.append(child.stdout)
    assert json.loads(told[1]) == {"states": 25, "choices": 96}
    assert re.search(r"^  sizes +How large a model is\.$", told[2], re.MULTILINE)


def install(folder, groups):
    """What an installer leaves behind of a project: its entry points."""
    place = folder / "edges-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: edges\nVersion: 1\n")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {at}" for name, at in points.items()))
    ]
    (place / "entry_points.txt").write_text("\n".join(lines))


def test_the_commands_are_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^\$ make (\w+)", PAGE, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
