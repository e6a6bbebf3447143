"""You have solved a problem once, and follow the saved policy in a loop of your own, where the
world need not keep to the model.

Run: python examples/own_loop.py
"""

import pathlib
import random
import tempfile

import tailpath as tp

ssp = tp.domains.river(rows=12, columns=5)
path = pathlib.Path(tempfile.mkdtemp()) / "policy.json"
tp.write_policy(tp.solve_cvar_exact(ssp, alpha=0.05).policy(0.05), path)

# Another day, another process: the policy, and a world that is a little slower than the model says.
policy = tp.read_policy(path, ssp)
world = random.Random(3)
rows = ssp.to_pandas().groupby(["state", "action"])
state, runner = ssp.start, policy.start_run()
while state not in ssp.goals:
    action = runner.action(state)
    outcome = rows.get_group((state, action))
    drawn = outcome.iloc[world.choices(range(len(outcome)), outcome["probability"])[0]]
    cost = drawn["cost"] * (
        1.25 if world.random() < 0.2 else 1
    )  # the current is not always the same
    surprise = runner.observe(cost, drawn["next_state"])
    if surprise is not None:
        print("surprise:", surprise.text)
    state = drawn["next_state"]
print(
    f"arrived after {runner.steps} steps at a cost of {float(runner.cost):g}, with"
    f" {len(runner.surprises)} surprises"
)
