"""You have a Gymnasium environment, and the average return is not what worries you.

Run: python examples/gymnasium_user.py
"""

import gymnasium

import tailpath as tp

ALPHA = 0.05

# Any environment with a table `P` will do. FrozenLake pays nothing for a step, so minus its reward would make no cost:
# say what the goal, a hole and a step on ice are worth.
ssp = tp.read(gymnasium.make("FrozenLake-v1", reward_schedule=(-1, -100, -1)))
for note in ssp.notes:
    print("note:", note)

# The policy with the least mean, and the one with the least CVaR, which is the mean of the worst 5 % of all runs.
average = tp.solve_expected(ssp).policy
careful = tp.solve_cvar_exact(ssp, alpha=ALPHA).policy(ALPHA)
for name, policy in (("least mean", average), ("least CVaR", careful)):
    costs = tp.evaluate(ssp, policy, alpha=ALPHA)  # the exact distribution of the total cost
    print(f"{name}: mean {costs.mean:8.3f}   VaR {costs.var(ALPHA):6.0f}   CVaR {costs.cvar(ALPHA):8.3f}")

# The careful policy would rather take a hole than wander on the ice for long: make holes dearer, and look again.
