"""
The cost of one policy
======================

How probable each total cost is, with the mean, VaR and CVaR. On the command line: ``tailpath
evaluate gridworld:14x16 expected --alpha 0.1 --plot costs.pdf``.
"""

import tailpath as tp

ssp = tp.domains.gridworld("14x16")
costs = tp.evaluate(ssp, tp.solve_expected(ssp), alpha=0.1)
axes = costs.plot()
