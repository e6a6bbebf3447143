"""What pages print, told apart: examples with the values in their comments, commands with their
output, and the rules by which either is compared with what the program does.
"""

import ast
import contextlib
import io
import re
from typing import Any, NamedTuple

NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e-?\d+)?|inf)"
NUMBERS = re.compile(rf"({NUMBER}(?:, {NUMBER})*)(?::.*)?$")
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: From so many digits on the last one counts; fewer tell a number to a millionth.
FULL = 7


class Block(NamedTuple):
    """A fenced block, and whether nothing but an empty line is between it and the one before."""

    language: str
    text: str
    follows: bool


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, end = [], -1
    for match in FENCED.finditer(page):
        found.append(Block(match[1].strip(), match[2], not page[end : match.start()].strip()))
        end = match.end()
    return found


# ---------------------------------------------------------------------- examples


def run_example(code: str, name: str, scope: dict[str, Any]) -> str:
    """Run an example, hold the values of its comments against the program, return what it
    prints.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for node in ast.parse(code).body:
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), name, "exec"), scope)
                continue
            found = eval(compile(ast.Expression(node.value), name, "eval"), scope)
            told = value_told(comment_of(node, code.splitlines()))
            assert told is None or agrees(told[0], found), f"{ast.unparse(node)} is {found!r}"
    return printed.getvalue()


def comment_of(node: ast.Expr, lines: list[str]) -> str:
    """The comment behind an expression that stands alone, or on the line below it."""
    assert node.end_lineno is not None
    behind = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode().strip()
    below = lines[node.end_lineno] if node.end_lineno < len(lines) else ""
    text = behind or below
    return text[2:] if text.startswith("# ") else ""


def value_told(comment: str) -> tuple[Any] | None:
    """The value that a comment tells: numbers with commas between, with or without words behind a
    colon, or a literal; None for prose. Numbers stay texts, since their digits count.
    """
    numbers = NUMBERS.match(comment)
    if numbers:
        return (numbers[1].split(", "),)
    with contextlib.suppress(ValueError, SyntaxError):
        return (ast.literal_eval(comment),)
    return None


def agrees(told: Any, found: Any) -> bool:
    """Whether a value is the one told; numbers that are texts have the digits they show."""
    if isinstance(told, (list, tuple)):
        every = list(found) if isinstance(found, (list, tuple)) or hasattr(found, "dtype") else None
        if every is None:
            return len(told) == 1 and agrees(told[0], found)
        return len(told) == len(every) and all(map(agrees, told, every))
    if isinstance(told, str) and not isinstance(found, str):
        digits = re.sub(r"e.*|[^\d]", "", told).lstrip("0")
        exponent = int(told.partition("e")[2] or 0)
        last = 10.0 ** (exponent - len(told.partition("e")[0].partition(".")[2]))
        number = float(told)
        near = max(last / 2, 1e-13 * abs(number)) if len(digits) >= FULL else 1e-6 * abs(number)
        if number in (float("inf"), float("-inf")) or number == 0:
            return bool(found == number)
        return bool(abs(found - number) <= near)
    if isinstance(told, float):
        return bool(abs(found - told) <= 1e-12 * abs(told))
    return bool(told == found)


# ---------------------------------------------------------------------- commands


class Session(NamedTuple):
    """A command, and the lines that it prints; `...` stands for lines that are left out."""

    command: str
    output: str


def sessions(page: str) -> list[Session]:
    """The commands of a page that are shown with their output."""
    found = []
    for block in blocks(page):
        if block.language not in ("", "console"):
            continue
        for command, output in re.findall(
            r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE
        ):
            if output.strip():
                found.append(Session(command.partition("  #")[0].strip(), output.strip("\n")))
    return found


def comparable(output: str) -> str:
    """An output without what is of a machine and a day: the column `seconds`, the row `time`, how
    long planning, compiling and writing took, and digits behind the tenth of numbers with more than
    twelve. These change the width of columns, so one space is as good as several.
    """
    lines, cut = [], None
    for line, below in zip([*output.splitlines()], [*output.splitlines()[1:], ""]):
        if line.endswith(" seconds") and set(below) <= {"-", " "} and below:
            cut = below.rindex(" ")
        elif not line:
            cut = None
        if re.match(r"time {2,}|compiled, once", line):
            continue
        line = re.sub(r"(planned|made) in [\d.e+-]+ s", r"\1 in TIME", line[:cut])
        line = re.sub(r"\d+\.\d{4,}", _ten_digits, line)
        lines.append(re.sub(r"  +", " ", re.sub(r"-{3,}", "---", line)).strip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _ten_digits(found: re.Match[str]) -> str:
    return f"{float(found[0]):.10g}" if len(found[0].lstrip("0.")) > 13 else found[0]


def shows(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts = [part.strip("\n") for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    lines = [re.escape(part + "\n") if part else "" for part in parts]
    return re.fullmatch(r"(?:.*\n)*?".join(lines), printed + "\n") is not None
