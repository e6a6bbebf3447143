"""Changes that are not drawn, since no test can or should notice them: they move only how fast a
result is found, how much memory it takes, or beyond which size a problem is refused.

Every entry has its reason. Nothing that changes a value, a bound, a choice or a message belongs
here; what a test could notice, but none does, is a survivor.
"""

from __future__ import annotations

from typing import NamedTuple


class LeftOut(NamedTuple):
    """All changes inside a function, or of a constant, of a file of the package; where a `line` is
    given, only those of statements that begin with it, and where a `change` is, only this one.
    """

    path: str
    name: str
    reason: str
    line: str = ""
    change: str = ""


#: Limits of effort and memory, one more of which is as good: they are far beyond what any problem
#: takes, or the work is done in pieces of about that size, or it goes on until nothing moves.
LIMITS = {
    "certify/games.py": ("TRIES",),
    "dp/backup.py": ("AT_ONCE",),
    "dp/budgets.py": ("VALUES_PER_CALL", "TOTAL_BYTES", "CHANGES_PER_NODE"),
    "dp/expected.py": ("LARGEST_ELIMINATION", "MAX_PRODUCTS", "LARGEST_FACTORS"),
    "dp/forward.py": ("BLOCK", "MAX_LISTS"),
    "dp/games.py": ("MAX_STRATEGIES",),
    "dp/joint.py": ("MAX_POLICIES",),
    "dp/layout.py": ("WINDOW", "LEAST_ROWS"),
    "dp/layout_builders.py": ("LARGEST_JOINT",),
    "dp/optimum.py": ("MAX_POLICIES",),
    "certify/real_budgets.py": ("MAX_SWEEPS",),
    "dp/sweeps.py": (
        *("EVALUATIONS", "SLOW_EVALUATIONS", "PLAIN_ROUNDS"),
        *("PATIENCE", "MAX_ROUNDS", "CHECKS"),
    ),
    "dp/totals.py": ("BLOCK",),
    "evaluation/distribution.py": ("MAX_DRAWN",),
    "evaluation/engine.py": ("MAX_BYTES", "MAX_NODES"),
    "evaluation/evaluate.py": ("MAX_LEVELS",),
    "evaluation/lattice.py": ("HEAD_BYTES", "ENTRY_BYTES", "MOST_AT_ONCE", "AT_ONCE", "PAUSE"),
    "evaluation/product.py": ("SHORT", "LONGEST"),
    "evaluation/queue.py": ("PAUSE",),
    "evaluation/simulation.py": ("MAX_RUNS",),
}
PIECES = "a larger or smaller piece at once gives the same numbers"
ENOUGH = "arrays that are longer than what is written into them"
ESTIMATE = "an estimate of memory, asked before it is taken"
LEFT_OUT = (
    *(
        LeftOut(path, name, "one more of a limit, or of what is done at once")
        for path, names in LIMITS.items()
        for name in names
    ),
    *(
        LeftOut(
            f"evaluation/{file}.py", name, "a limit of time or memory, one more is as good", line
        )
        for file, name, lines in (
            ("engine", "Request", ("pairs: int", "ring_cells: int")),
            ("simulation", "RunTuning", ("block: int", "pause: int", "pairs: int", "steps: int")),
        )
        for line in lines
    ),
    LeftOut("dp/forward.py", "_ring_shift", "what does not fit into the ring waits in lists"),
    LeftOut("dp/forward.py", "lay_out", "more lists of the overflow", "overflow = np.full("),
    LeftOut("dp/forward.py", "enlarged", ENOUGH, "after, bucket, node, mass = _unused("),
    LeftOut("dp/budgets.py", "fill", PIECES, "rows = int(min("),
    LeftOut("dp/budgets.py", "fill", ESTIMATE, "size = 8 *"),
    LeftOut("dp/budgets.py", "fill", ESTIMATE, "level_bytes = "),
    LeftOut("dp/budgets.py", "fill", ESTIMATE, "check(size"),
    LeftOut("dp/budgets.py", "fill", ENOUGH, "if n_changes + n >"),
    LeftOut("dp/budgets.py", "node_values", ENOUGH, "changes = new_changes("),
    LeftOut("dp/budget_model.py", "new_work", ENOUGH, "return Work(", "1 -> 2"),
    LeftOut("dp/joint.py", "joint_values", ENOUGH, "leave, value = np.empty(", "1 -> 2"),
    LeftOut("dp/sweeps.py", "without_self_loops", ENOUGH, "number = np.empty(", "1 -> 2"),
    LeftOut("dp/budget_backups.py", "backup_scalarised", ENOUGH, "scratch = np.empty("),
    LeftOut("dp/layout.py", "work", PIECES, "reach, row = "),
    LeftOut("dp/layout.py", "work", PIECES, "most = min("),
    LeftOut("dp/layout.py", "work", PIECES, "rows = int(max("),
    LeftOut("dp/layout.py", "costs", "either branch finds the same", "if level.max("),
    LeftOut("dp/pairs.py", "reach_pairs", ENOUGH, "room = end"),
    LeftOut("dp/pairs.py", "reach_pairs", ENOUGH, "table, key = enlarge(key"),
    LeftOut("evaluation/queue.py", "_bytes", ESTIMATE),
    LeftOut("evaluation/queue.py", "run", ESTIMATE, "if self._bytes("),
    LeftOut("evaluation/lattice.py", "run", PIECES, "runs, mass = np.empty("),
    LeftOut("evaluation/lattice.py", "run", ESTIMATE, "grown = "),
    LeftOut("evaluation/lattice.py", "run", ESTIMATE, "if grown >"),
    LeftOut("evaluation/lattice.py", "run", PIECES, "mass.resize(count + min("),
    LeftOut("evaluation/simulation.py", "_walk_all", "how many threads", "workers = max("),
    LeftOut("evaluation/simulation.py", "_walk_all", PIECES, "size = max("),
    LeftOut("dp/elimination.py", "eliminate", ENOUGH, "inner, leave, gain =", "1 -> 2"),
    LeftOut("dp/backup.py", "NO_SLACK", ENOUGH),
    LeftOut("evaluation/product.py", "Lateness", ENOUGH, "_late: FloatArray"),
    LeftOut("evaluation/product.py", "at", ENOUGH, "return float(", "1 -> 2"),
    LeftOut("dp/joint.py", "NO_JOINT", ENOUGH),
    LeftOut("dp/budgets.py", "fill", PIECES, "last = w + rows", "1 -> 2"),
    LeftOut("dp/expected.py", "_eliminated", ENOUGH, "degree = ", "1 -> 2"),
    LeftOut("certify/rounding.py", "exit_error", ENOUGH, "most = np.zeros(", "-1 -> +1"),
    LeftOut("certify/rounding.py", "exit_error", ENOUGH, "most = np.zeros(", "1 -> 2"),
    # Equivalent changes, one by one.
    *(
        LeftOut("certify/totals.py", "mixed_enclosure", "a side is -1 or 1", "sides = ", changed)
        for changed in ("side < 0 -> side <= 0", "0 -> 1")
    ),
    *(
        LeftOut("certify/totals.py", "outwards", "a side is -1 or 1", "", changed)
        for changed in ("side > 0 -> side >= 0", "side < 0 -> side <= 0")
    ),
    LeftOut(
        *("certify/rounding.py", "compounded", "a side is -1 or 1"),
        *("if side > 0", "side > 0 -> side >= 0"),
    ),
    LeftOut(
        *("dp/budgets.py", "fill", "one more turn, from a level that is too high"),
        *("more = ", "n_changes + n > len(changes.node) -> n_changes + n >= len(changes.node)"),
    ),
    LeftOut(
        *("evaluation/evaluate.py", "engine_for", "one more of a limit"),
        *("", "policy.budget <= MAX_LEVELS -> policy.budget < MAX_LEVELS"),
    ),
    LeftOut(
        *("dp/layout_builders.py", "_ordered", "no block of several nodes has a number below 0"),
        *("depth, group = ", "1 -> 2"),
    ),
    LeftOut(
        *("dp/forward.py", "_begin_epoch", "a list ends with a number below 0"),
        *("ring.first[slot] = -1", "1 -> 2"),
    ),
    LeftOut(
        *("dp/sweeps.py", "settle", "one more of a limit"),
        *("if not change", "rounds >= most -> rounds > most"),
    ),
    LeftOut(
        *("dp/sweeps.py", "moves", "a value that moved is not 0"),
        *("most = min(", "two * value[state] < 0.0 -> two * value[state] <= 0.0"),
    ),
    LeftOut(
        *("dp/sweeps.py", "moves", "a product has the sign of the quotient"),
        *("most = min(", "two * value[state] -> two / value[state]"),
    ),
    *(
        LeftOut(
            *("certify/real_budgets.py", "least", "both ends are among the positions anyway"),
            *("if b != d and", f"0 < (c - a) / (b - d) < width -> {changed}"),
        )
        for changed in ("0 <= (c - a) / (b - d) < width", "0 < (c - a) / (b - d) <= width")
    ),
    LeftOut(
        *("certify/real_budgets.py", "least", "one more of a limit"),
        *("while open_ and", "sweeps < MAX_SWEEPS -> sweeps <= MAX_SWEEPS"),
    ),
    LeftOut(
        *("dp/expected.py", "factorised", "one more of a limit"),
        *("if n * band >", "n * band > LARGEST_FACTORS -> n * band >= LARGEST_FACTORS"),
    ),
    LeftOut(
        *("dp/optimum.py", "improve_rows", "no number is less than infinity by as much"),
        *("room = margin", "0.0 -> 1.0"),
    ),
    LeftOut(
        *("evaluation/queue.py", "dearest", "asked of a side, -1 or 1, alone"),
        *("return math.inf", "side > 0 -> side >= 0"),
    ),
    LeftOut(
        *("evaluation/mixtures.py", "reaching", "at the least tail mass, once more or not"),
        *(
            "found.open_mass > LEAST_TAIL",
            "found.open_mass > LEAST_TAIL -> found.open_mass >= LEAST_TAIL",
        ),
    ),
    LeftOut("evaluation/engine.py", "again", "a limit that no search reaches", "", "62 -> 63"),
    LeftOut("evaluation/engine.py", "again", "a limit that no search reaches", "", "2 -> 3"),
    LeftOut(
        "evaluation/evaluate.py",
        "evaluate",
        "a limit that no search reaches",
        "return evaluate_request(",
        "2 -> 3",
    ),
    LeftOut(
        *("evaluation/engine.py", "largest_factor", "an upper bound, twice as far from 1"),
        *("plain, high = ", "1 -> 2"),
    ),
    LeftOut(
        "evaluation/following.py",
        "Follower",
        "other draws of the same law",
        "def __init__",
        "1 -> 2",
    ),
    LeftOut(
        *("certify/products.py", "expected_product", "no value is 1e-250"),
        *("if not (falls > 0)", "value < LEAST -> value <= LEAST"),
    ),
    LeftOut(
        *("certify/rounding.py", "VANISHED", "2^60 times 2^-1074 is less, either way"),
        *("", "1010 -> 1011"),
    ),
    LeftOut(
        *("dp/backup.py", "row_value", "four outcomes with or without a loop around them"),
        "if outcome + np.uint64(AT_ONCE)",
        "outcome + np.uint64(AT_ONCE) <= last -> outcome + np.uint64(AT_ONCE) < last",
    ),
    LeftOut(
        *("dp/forward.py", "_fill_cells", "set before it is read; with the goal, two or none"),
        *("has_heuristic, here = ", "0 -> 1"),
    ),
    *(
        LeftOut(
            "dp/budget_backups.py", name, "no value is 1e-280", "", f"{x} > TINY -> {x} >= TINY"
        )
        for name, x in (
            *(("backup_lexicographic", "least"), ("backup_lexicographic", "total")),
            *(("backup_robust", "least"), ("backup_robust", "total")),
            *(("backup_scalarised", "best_risk[i]"), ("backup_joint", "value[k]")),
        )
    ),
    LeftOut(
        *("evaluation/simulation.py", "_simulate_mixture", "the first word is the same"),
        *("own = int(", "1 -> 2"),
    ),
    LeftOut(
        *("dp/budgets.py", "sweep_levels"),
        "the room says which nodes need not be looked at; with more, all of them are",
        *("room = cutoff - w", "cutoff - w -> cutoff + w"),
    ),
    LeftOut(
        *("dp/layout.py", "beyond", "either layout has the same values"),
        *(
            "if self.nature == CERTAIN",
            "self.level.max(initial=0) < limit -> self.level.max(initial=0) <= limit",
        ),
    ),
    LeftOut(
        *("dp/layout.py", "beyond", "a node whose closed form is put down sooner than it is read"),
        *(
            "np.minimum.at(cost_from_start",
            "nodes.cost_from_start[source] + 1 -> nodes.cost_from_start[source] - 1",
        ),
    ),
    LeftOut(
        *("dp/optimum.py", "improve_rows", "row 0 is the first one of state 0"),
        *("if row < 0", "row < 0 -> row <= 0"),
    ),
    LeftOut(
        *("dp/optimum.py", "_is_proper", "no state is no step away from the end"),
        *(
            "return bool(",
            "rows.restrict(chosen).steps() >= 0 -> rows.restrict(chosen).steps() > 0",
        ),
    ),
    LeftOut(
        *(
            "certify/real_budgets.py",
            "least",
            "stretches that nobody looks at wait with the others",
        ),
        *("able = below", "1 -> 2"),
    ),
    LeftOut(
        *("dp/sweeps.py", "leap_length", "a product that is 0 fails the second condition"),
        *("if 0.0 < cross", "0.0 < cross < first_square -> 0.0 <= cross < first_square"),
    ),
    LeftOut(
        *("certify/values.py", "_proved", "infinite ends add up to no finite number either"),
        *("if directly or", "bounds.upper - bounds.lower -> bounds.upper + bounds.lower"),
    ),
    LeftOut(
        *("evaluation/budget.py", "cost_to_go", "a side of 0 was answered before"),
        *("return np.full(", "side < 0 -> side <= 0"),
    ),
    LeftOut(
        *("evaluation/evaluate.py", "engine_for", "a budget of one unit, unrolled"),
        *("if policy.budget > 0", "0 -> 1"),
    ),
    LeftOut(
        *("evaluation/lattice.py", "_along_zero_costs", ENOUGH),
        *("node, position = ", "1 -> 2"),
    ),
    LeftOut(
        *("evaluation/product.py", "up_to", "a penalty beyond every t that counts, or of nothing"),
        *("penalty = ", "0 -> 1"),
    ),
    LeftOut(
        *("evaluation/product.py", "up_to", "a penalty beyond every t that counts"),
        *("penalty = ", "2 -> 3"),
    ),
    LeftOut(
        *("evaluation/product.py", "up_to", "a table that is longer by one"),
        *("found = robust(", "1 -> 2"),
    ),
    LeftOut(
        *("certify/games.py", "nearest", "one more try, with a slope that proves nothing"),
        *("for farther in range(TRIES", "0 -> 1"),
    ),
    LeftOut(
        *("dp/budgets.py", "cutoff_of", "more levels than can matter"),
        *("return min(objective.limit", "1 -> 2"),
    ),
    LeftOut(
        *("dp/optimum.py", "_proper_policy", "another policy that ends, to begin with"),
        *("chosen[state[nearer]", "-1 -> +1"),
    ),
    LeftOut(
        *("dp/totals.py", "cut", "what is cut off at its own end is 0"),
        *("if self.last > last", "self.last > last -> self.last >= last"),
    ),
    LeftOut("evaluation/evaluate.py", "evaluate", "a limit that no search reaches", "", "62 -> 63"),
    LeftOut("evaluation/mixtures.py", "reaching", "a tail cut finer", "found = ", "10 -> 11"),
    LeftOut(
        *("evaluation/simulation.py", "_simulate_by_calls", "other draws of the same law"),
        *("follower, drawing = ", "1 -> 2"),
    ),
)


def is_left_out(path: str, names: frozenset[str], line: str, change: str) -> bool:
    """Whether a change is left out: of a statement that begins with `line`, inside functions or
    classes or of constants with these names.
    """
    return any(
        path == f"src/tailpath/{each.path}"
        and each.name in names
        and line.startswith(each.line)
        and each.change in ("", change)
        for each in LEFT_OUT
    )
