"""Follow a saved policy without tailpath: every kind of `policy.json`, in plain Python.

    run = Run(load("policy.json"))
    action = run.action(state)             # what to do here
    run.observe(cost, next_state)          # what that cost, and where it led

`policy_reader.js` is the same in JavaScript. Costs are 0 or more, as those of the model.

Run: python examples/plain_policy_reader.py policy.json STATE [COST STATE ...]
"""

import bisect
import json
import math
import random
import sys
from fractions import Fraction
from itertools import pairwise


def load(path):
    """The policy in a file `.json`."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def name(value):
    """Names that are lists in JSON are tuples."""
    return tuple(map(name, value)) if isinstance(value, list) else value


class Run:
    """One run of a policy from its start: what it does, and what it remembers."""

    def __init__(self, policy, seed=None):
        self.random = random.Random(seed)
        arrays = policy.get("arrays", {})
        if policy["kind"] == "mixed":  # a coin at the start decides whom to follow
            (number,) = self.random.choices(range(len(policy["members"])), policy["weights"])
            mark = f"{number}_"
            arrays = {
                key.removeprefix(mark): a for key, a in arrays.items() if key.startswith(mark)
            }
            policy = policy["members"][number]
        self.policy, self.arrays, self.kind = policy, arrays, policy["kind"]
        self.memory = None if self.kind == "markov" else name(policy.get("start"))
        if self.kind in ("markov", "memory"):
            self.rules = {name(key): [(name(action), 1.0)] for *key, action in policy["decisions"]}
            for *key, action, share in policy["mixed"]:
                self.rules.setdefault(name(key), []).append((name(action), share))
            rows = map(name, policy.get("remember", []))
            self.remember = {row[:5]: row[5] for row in rows}
        else:
            self.states, self.actions = map(self.names, ("states", "actions"))
            self.number = {state: s for s, state in enumerate(self.states)}
            self.memory = policy["budget"] if self.kind == "budget steps" else None

    def names(self, key):
        listed = self.policy[key]
        return list(map(name, listed)) if isinstance(listed, list) else list(range(listed))

    def action(self, state):
        """What to do in a state; None where nothing is to be decided."""
        self.state = state = name(state)
        if self.kind in ("markov", "memory"):
            rule = self.rules.get((state,) if self.kind == "markov" else (state, self.memory))
            actions, shares = zip(*rule) if rule else ((None,), (1,))
            (self.taken,) = self.random.choices(actions, shares)
            return self.taken
        choice = self.choice(self.number[state])
        self.taken = self.actions[self.arrays["choice_action"][choice]] if choice >= 0 else None
        return self.taken

    def choice(self, s):
        arrays = self.arrays
        if self.kind == "budget steps":  # the last step up to the budget left; below the first one
            begin, end = arrays["first"][s], arrays["first"][s + 1]  # that of the least mean
            step = bisect.bisect_right(arrays["from_budget"], self.memory, begin, end) - 1
            return arrays["choice"][step] if step >= begin else arrays["risk_neutral"][s]
        if self.memory is None:
            self.memory = self.nearest(s, arrays["atoms"][self.policy["start_atom"]])
        return arrays["choice"][s][self.memory]

    def nearest(self, s, y):
        """The atom of a state that is nearest to y, on a logarithmic scale."""
        atoms, own = self.arrays["atoms"], range(len(self.arrays["atoms"]))
        if self.kind == "atom grids":
            marks = self.arrays["own"][self.arrays["of_state"][s]]
            own = [k for k in own if marks[k]]
        borders = [math.sqrt(atoms[a] * atoms[b]) for a, b in pairwise(own)]
        return own[bisect.bisect_left(borders, y)]

    def observe(self, cost, next_state):
        """What the action cost, and where it led."""
        after = name(next_state)
        if self.kind == "memory":
            self.memory = self.remember[self.memory, self.state, self.taken, cost, after]
        elif self.kind == "budget steps":
            units = Fraction(str(cost)) / Fraction(self.policy["unit"])
            self.memory = max(0, self.memory - math.ceil(units))
        elif self.kind != "markov":
            self.memory = self.moved(self.number[self.state], float(cost), after)

    def moved(self, s, cost, after):
        """The next atom: y times the risk factor of the outcome seen, or of the nearest to it."""
        arrays = self.arrays
        choice, target = arrays["choice"][s][self.memory], self.number.get(after)
        begin, end = arrays["choice_outcomes"][choice : choice + 2]
        seen = [o for o in range(begin, end) if arrays["outcome_target"][o] == target]
        y = arrays["atoms"][self.memory]
        if seen:
            costs = arrays["outcome_cost"]
            outcome = min(seen, key=lambda o: (abs(costs[o] - cost), -costs[o]))
            y *= arrays["xi"][arrays["xi_offset"][s][self.memory] + outcome - begin]
        return self.memory if target is None else self.nearest(target, y)


if __name__ == "__main__":
    run, (first, *seen) = Run(load(sys.argv[1])), sys.argv[2:] or [None]
    if first is None:
        sys.exit(__doc__)
    print(first, "->", run.action(first))
    for cost, state in zip(seen[::2], seen[1::2]):
        run.observe(cost, state)
        print(state, "->", run.action(state))
