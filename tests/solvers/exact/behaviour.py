"""What every policy by budget does alike, whatever table it came from."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import tailpath as tp
from tailpath.policies.unrolling import _unroll_any


def assert_behaves(ssp: tp.SSP, policy: Any, folder: Path, alpha: float) -> None:
    """It unrolls as if it were followed step by step, comes back from pickles and files, and runs
    as it is evaluated.
    """
    chained, slowly = tp.unroll(ssp, policy), _unroll_any(ssp, policy, 10**6)
    assert chained.n == slowly.n
    assert sorted(zip(chained.state.tolist(), chained.memory.tolist())) == sorted(
        zip(slowly.state.tolist(), slowly.memory)
    )
    assert pickle.loads(pickle.dumps(policy)) == policy
    for name in ("policy.npz", "policy.json"):
        tp.write_policy(policy, folder / name)
        assert tp.read_policy(folder / name, ssp) == policy
    costs, exact = tp.simulate(ssp, policy, 20_000, seed=1), tp.evaluate(ssp, policy, alpha)
    assert abs(costs.mean() - exact.mean) < 6 * exact.std / 20_000**0.5
