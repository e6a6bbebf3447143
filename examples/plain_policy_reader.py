"""Follow a saved policy without tailpath: a budget policy written by `tailpath solve ... --output policy.json`, read in plain Python.

Run: python examples/plain_policy_reader.py policy.json
"""

import json
import math
import sys
from fractions import Fraction

with open(sys.argv[1], encoding="utf-8") as file:
    policy = json.load(file)
assert policy["kind"] == "budget", "this reader knows budget policies"
arrays, unit = policy["arrays"], Fraction(policy["unit"])
states = policy["states"] if isinstance(policy["states"], list) else list(range(policy["states"]))
actions = policy["actions"] if isinstance(policy["actions"], list) else list(range(policy["actions"]))


def action(state, spent):
    """The action in a state after so much has been spent: by the budget left, or risk-neutral once it is gone."""
    s, left = states.index(state), policy["budget"] - math.ceil(Fraction(str(spent)) / unit)
    row = arrays["row"][s]
    if left >= 1 and row >= 0 and left < len(arrays["table"][row]):
        choice = arrays["state_choices"][s] + arrays["table"][row][left]
    else:
        choice = arrays["neutral"][s]
    return actions[arrays["choice_action"][choice]] if choice >= 0 else None


for state in states[:10]:
    print(state, [action(state, spent) for spent in (0, float(policy["budget"] * unit) / 2, 10**9)])
