"""Mutations that were chosen, since each once survived or would do much harm: roundings, constants
of certificates, directions of the checker, margins, ties, levels, one too many and when to stop.

`python -m tests.mutation --chosen [PART_OF_A_PATH ...]` applies them one at a time, and runs the
tests named beside them.
"""

from __future__ import annotations

from typing import NamedTuple


class Chosen(NamedTuple):
    """What stands once in a file of the package, what stands there instead, and the near tests."""

    path: str
    before: str
    after: str
    tests: str


VERIFY = "tests/verify"
FEW_BITS = "tests/verify/test_few_bits.py"
CHOSEN = (
    # Directions of the checker, which hundreds of bits hide.
    Chosen(
        "verify/distribution.py",
        "share = (low * w // total, -(-high * w // total))",
        "share = (-(-low * w // total), -(-high * w // total))",
        FEW_BITS,
    ),
    Chosen(
        "verify/distribution.py",
        "share = (low * w // total, -(-high * w // total))",
        "share = (low * w // total, high * w // total)",
        FEW_BITS,
    ),
    Chosen(
        "verify/chain.py",
        "return [(_floor(v), -_floor(-v)) for v in exact]",
        "return [(_floor(v), _floor(v)) for v in exact]",
        FEW_BITS,
    ),
    Chosen(
        "verify/chain.py",
        "share = max(share, -((-defect << SHARE) // (d * drift)))",
        "share = max(share, (defect << SHARE) // (d * drift))",
        FEW_BITS,
    ),
    Chosen(
        "verify/chain.py",
        "drift = steps[node] - ahead(row, steps) - 1",
        "drift = steps[node] - ahead(row, steps) + 1",
        FEW_BITS,
    ),
    Chosen(
        "verify/excess.py",
        "found.append(sum(map(mul, given[-1], values)) // row.denominator)",
        "found.append(-(-sum(map(mul, given[-1], values)) // row.denominator))",
        FEW_BITS,
    ),
    Chosen(
        "verify/optimum.py",
        "bounds = [(math.floor(v * ONE), math.ceil(v * ONE)) for v in _optimum(rows, every)]",
        "bounds = [(math.ceil(v * ONE), math.ceil(v * ONE)) for v in _optimum(rows, every)]",
        FEW_BITS,
    ),
    Chosen(
        "verify/optimum.py",
        "least[node] > ahead(row, least, ONE)",
        "least[node] > ahead(row, least, ONE) + ONE",
        FEW_BITS,
    ),
    Chosen("verify/excess.py", "if found >= claim:", "if found > claim - 1:", VERIFY),
    # Roundings of sums, and constants of certificates.
    Chosen(
        "certify/totals.py",
        "return sum_error(len(self.costs))",
        "return 0.0",
        "tests/certify tests/evaluation",
    ),
    Chosen("certify/rounding.py", "PER_EDGE = 5", "PER_EDGE = 0", "tests/certify"),
    Chosen(
        "certify/rounding.py",
        "AFTERWARDS = 64 * ROUNDOFF",
        "AFTERWARDS = 0 * ROUNDOFF",
        "tests/certify",
    ),
    Chosen(
        "certify/rounding.py",
        "return 2 * terms * ROUNDOFF + AFTERWARDS",
        "return 0 * terms * ROUNDOFF + AFTERWARDS",
        "tests/certify",
    ),
    Chosen(
        "certify/losses.py",
        "if exact else np.maximum(np.abs(z), np.abs(before))",
        "if exact else np.minimum(np.abs(z), np.abs(before))",
        "tests/certify/test_losses.py",
    ),
    # Ties, levels, one too many, and when to stop.
    Chosen(
        "dp/backup.py",
        "best_choice = np.int64(row) if total < best else best_choice",
        "best_choice = np.int64(row) if total <= best else best_choice",
        "tests/dp",
    ),
    Chosen(
        "dp/sweeps.py",
        "if moved == last or (change <= ROUNDING_NOISE and change >= previous):",
        "if moved >= 0 or (change <= ROUNDING_NOISE and change >= previous):",
        "tests/dp tests/solvers/test_expectation.py",
    ),
    Chosen(
        "kernels/shortest_paths.py",
        "if cost < out_distance[source]:",
        "if cost <= out_distance[source]:",
        "tests/kernels tests/test_graph.py",
    ),
    Chosen(
        "kernels/shortest_paths.py",
        "if child + one < size and key[child + one] < key[child]:",
        "if child + one < size and key[child + one] > key[child]:",
        "tests/kernels tests/test_graph.py",
    ),
    Chosen(
        "kernels/graph.py",
        "if out_inside[source] and choices_left[source] == 0:",
        "if out_inside[source] and choices_left[source] <= 1:",
        "tests/kernels tests/test_graph.py",
    ),
    Chosen(
        "kernels/graph.py",
        "elif index[to] < low[node]:",
        "elif index[to] > low[node]:",
        "tests/kernels tests/test_graph.py",
    ),
)
