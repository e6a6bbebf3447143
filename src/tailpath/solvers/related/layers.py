"""Evaluation by cost layers (Meggendorfer 2022, for Markov chains): layer k holds the probability
of being anywhere after paying k.

    layer_k(x) = sum over edges (x', cost c) of layer_{k - c}(x') P(x', x)

The first k by which 1 - alpha of the probability has arrived is the VaR. With f(k) the probability
of paying exactly k in all,

    CVaR_alpha = (E[Z] - sum_{k <= VaR} k f(k) + VaR (sum_{k <= VaR} f(k) - (1 - alpha))) / alpha.

The published algorithm has unit costs; here a cost is any integer number of the model's unit. It
computes what ForPECVaR computes: both go forward until 1 - alpha has arrived. ForPECVaR keeps only
pairs that can be reached and orders them by a heuristic; and `evaluate` adds up the tail instead of
subtracting the head, which loses digits for small alpha. A test compares the two.
"""

from __future__ import annotations

import numpy as np

from tailpath.errors import ModelError
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.options import check_alpha
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import unroll


def cvar_by_layers(ssp: SSP, policy: Policy, alpha: float) -> tuple[float, float]:
    """CVaR and VaR at alpha of a policy that surely arrives and whose memory is finite."""
    alpha = check_alpha(alpha)
    refuse_signed(ssp, "the search by cost layers")
    chain = unroll(ssp, policy)
    if chain.unit is None:
        raise ModelError("the costs have no common unit; cost layers count in units")
    if not chain.arrives.all():
        raise ModelError("the policy may never arrive; cost layers need a policy that does")
    step = np.rint(chain.cost / float(chain.unit)).astype(np.int64)
    if ((step == 0) & (chain.target < chain.n)).any():
        raise ModelError("a free step does not arrive; cost layers need costs above 0")
    longest = int(step.max(initial=1)) + 1
    ring = np.zeros((longest, chain.n + 1))
    ring[0, chain.start] = 1.0
    arrived, head = 0.0, 0.0
    k = 0
    while True:
        layer = ring[k % longest].copy()
        ring[k % longest] = 0.0
        here = float(layer[chain.n])
        mass = layer[chain.source] * chain.probability
        np.add.at(ring, ((k + step) % longest, chain.target), mass)
        # A free step arrives at once, within its layer.
        here += float(ring[k % longest, chain.n])
        ring[k % longest] = 0.0
        arrived, head = arrived + here, head + k * here
        if arrived > 0 and arrived >= (1 - alpha) * (1 - 1e-15):
            break
        k += 1
    mean = float(np.append(chain.expected_cost.value, 0.0)[chain.start]) / float(chain.unit)
    cvar = (mean - head + k * (arrived - (1 - alpha))) / alpha
    return cvar * float(chain.unit), k * float(chain.unit)
