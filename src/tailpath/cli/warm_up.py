"""`tailpath warm-up`."""

from __future__ import annotations

import time

import click

import tailpath as tp

#: Large enough for the recursion to use all cores.
LARGE = "\n".join(["." * 90] * 89 + ["G" + "." * 88 + "S"])


@click.command()
def command() -> None:
    """Compile everything now instead of when it is first used.

    The machine code is kept on disk; with nothing to compile this takes about two seconds.
    """
    begin = time.perf_counter()
    for ssp in (tp.domains.gridworld("5x5"), tp.domains.textbook.PROBLEMS["negative-binomial"]().ssp):
        alpha = 0.1
        policies = [tp.solve_expected(ssp).policy, tp.solve_cvar_quantile(ssp).policy(alpha)]
        policies += [tp.solve_cvar_exact(ssp, alpha, lexicographic).policy(alpha) for lexicographic in (False, True)]
        tp.solve_cvar_exact(ssp, alpha, weight=0.5)
        tp.solve_on_time(ssp, 3)
        tp.frontier(ssp, tp.CVaR(alpha))
        for policy in policies:
            tp.evaluate(ssp, policy, alpha)
            tp.simulate(ssp, policy, 100, 1)
    large = tp.domains.gridworld(LARGE)
    tp.solve_cvar_exact(large, 0.5)
    tp.solve_on_time(large, 3)
    click.echo(f"ready after {time.perf_counter() - begin:.1f} s")
