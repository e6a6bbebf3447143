"""ForPECVaR: the paper's hardest evaluation, engine against engine in one run, and throughput on a
large grid.
"""

from __future__ import annotations

import resource
import time

import tailpath as tp
from benchmarks.measure import best_of, find_grid, gridworld
from tailpath.evaluation.engine import Request
from tailpath.evaluation.lattice import LatticeEngine, chain_space
from tailpath.model.border import Border


def run(small: bool = False) -> None:
    problem = gridworld(small)
    ssp = tp.domains.gridworld(problem)
    plan = tp.solve_cvar_quantile(ssp, atoms=tp.log_atoms(1e-3, 25))
    policy = plan.policy(1e-3)
    tp.evaluate(ssp, policy, 1e-3)
    end_to_end, found = best_of(lambda: tp.evaluate(ssp, policy, 1e-3), 10)
    chain = tp.unroll(ssp, policy)
    search_time, _ = best_of(lambda: search(chain, 1e-3), 10)
    queue_time, slow = best_of(lambda: tp.evaluate(ssp, policy, 1e-3, engine="queue"), 3)
    print(
        f"{problem}, 25 atoms, alpha 1e-3: {chain.n} pairs in the chain, {found.expanded} expanded,"
        f" CVaR {found.cvar(1e-3):.6f}"
    )
    print(f"  unroll       {1e3 * best_of(lambda: tp.unroll(ssp, policy), 10)[0]:8.2f} ms")
    print(f"  V_mean       {1e3 * fresh(ssp, policy, 'expected_cost'):8.2f} ms")
    print(f"  V_min        {1e3 * fresh(ssp, policy, 'least_cost'):8.2f} ms")
    print(f"  search       {1e3 * search_time:8.2f} ms")
    print(f"  end to end   {1e3 * end_to_end:8.2f} ms   (3245 to 3345 s in the paper)")
    print(
        f"  queue engine {1e3 * queue_time:8.2f} ms   ({queue_time / end_to_end:.0f} times the"
        " lattice end to end)"
    )
    queue_search = queue_time - (end_to_end - search_time)
    print(
        f"  search alone, queue / lattice: {queue_search / search_time:.0f}; values differ by"
        f" {abs(found.cvar(1e-3) - slow.cvar(1e-3)):.1e}"
    )

    size, grid = find_grid(small)
    chain = tp.unroll(grid, tp.solve_expected(grid).policy)
    for heuristic in ("min", "zero"):
        begin = time.perf_counter()
        expanded = search(chain, 1e-3, heuristic)
        seconds = time.perf_counter() - begin
        print(
            f"{size} grid, heuristic {heuristic}: {expanded:,} pairs in {seconds:.2f} s,"
            f" {expanded / seconds / 1e6:.0f} million per second"
        )
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def search(chain: tp.CostChain, alpha: float, heuristic: str = "min") -> int:
    """The search alone: layout, buckets, stop. V_min is at hand."""
    request = Request(Border(chain.ssp), tp.MarkovPolicy({}), "lattice", alpha, limit=10**12)
    return (
        LatticeEngine(request, chain, chain_space(chain, heuristic), chain.start).search(0).expanded
    )


def fresh(ssp: tp.SSP, policy: tp.Policy, what: str) -> float:
    """Seconds for a property of a chain that nobody has asked yet."""
    times = []
    for _ in range(10):
        chain = tp.unroll(ssp, policy)
        if what == "expected_cost":
            _ = chain.least_cost
        begin = time.perf_counter()
        getattr(chain, what)
        times.append(time.perf_counter() - begin)
    return min(times)
