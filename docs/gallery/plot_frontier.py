"""
What safety costs
=================

The least mean against a risk: every corner is a policy, and between two of them lie their mixtures.
On the command line: ``tailpath frontier gridworld:8x9 --risk 'cvar(0.05)' --plot frontier.pdf``.
"""

import tailpath as tp

ssp = tp.domains.gridworld("8x9")
axes = tp.frontier(ssp, tp.CVaR(0.05)).plot()
