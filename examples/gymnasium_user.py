"""You have a Gymnasium environment, and the average return is not what worries you.

Run: python examples/gymnasium_user.py
"""

import gymnasium

import tailpath as tp

ALPHA = 0.05

# Any environment with a table `P` will do, as it is shipped. The notes say what was assumed: here
# that a hole is no goal, and that steps count.
env = gymnasium.make("FrozenLake-v1")
lake = tp.read(env)
for note in lake.notes:
    print("note:", note)

# On this ice no policy is sure to arrive. One way on: being lost, or giving up, costs as much as
# 100 steps.
ssp = tp.give_up(lake, 100)
average = tp.solve_expected(ssp)
careful = tp.solve_cvar_exact(ssp, alpha=ALPHA)
for name, policy in (("least mean", average), ("least CVaR", careful)):
    costs = tp.evaluate(ssp, policy, alpha=ALPHA)  # the exact distribution of the total cost
    print(
        f"{name}: mean {costs.mean:8.3f}   VaR {costs.var(ALPHA):6.0f}   CVaR"
        f" {costs.cvar(ALPHA):8.3f}"
    )

# Another: arrive as surely as possible, and among those policies with the fewest steps in the worst
# 5 % of the runs that arrive.
arriving = tp.given_arrival(lake)
print("runs that arrive:", arriving.notes[-1])
print(f"CVaR of their steps: {tp.solve_cvar_exact(arriving, alpha=ALPHA).cvar(ALPHA):.3f}")

# A third: the environment's own time limit. How often is the surest policy late or lost?
limited = tp.within(lake, env.spec.max_episode_steps)
surest = tp.solve_expected(arriving).policy
print(
    f"not arrived after {env.spec.max_episode_steps} steps:"
    f" {tp.evaluate(limited, surest.decisions, alpha=ALPHA).unreached:.6f}"
)
