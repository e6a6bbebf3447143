"""You have trained a Q-table, and want to know how far it is from the best there is: on average,
and in the worst runs.

Run: python examples/q_table.py
"""

import gymnasium
import numpy as np

import tailpath as tp

ALPHA = 0.05
env = gymnasium.make("CliffWalkingSlippery-v1")

# Plain Q-learning, as anybody would write it.
random = np.random.default_rng(0)
q = np.zeros((env.observation_space.n, env.action_space.n))
state, _ = env.reset(seed=0)
for _step in range(200_000):
    action = random.integers(4) if random.random() < 0.2 else int(np.argmax(q[state]))
    after, reward, terminated, truncated, _ = env.step(action)
    q[state, action] += 0.1 * (reward + (0 if terminated else q[after].max()) - q[state, action])
    state = env.reset()[0] if terminated or truncated else after

# The environment is its own model. A Q-table of rewards is to be maximised; its policy is evaluated
# exactly, not sampled.
ssp = tp.read(env)
trained = tp.policy(ssp, q, minimise=False)
print(tp.compare(ssp, {"trained": trained, "least mean": tp.solve_expected(ssp)}, [ALPHA, 1.0]))
print("\ntrained, in the worst 5 %:", tp.evaluate(ssp, trained, alpha=ALPHA).cvar(ALPHA))
