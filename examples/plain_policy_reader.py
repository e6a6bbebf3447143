"""Follow a saved policy without tailpath: a budget policy written by `tailpath solve ... --output
policy.json`, read in plain Python.

Run: python examples/plain_policy_reader.py policy.json
"""

import bisect
import json
import math
import sys
from fractions import Fraction

with open(sys.argv[1], encoding="utf-8") as file:
    policy = json.load(file)
assert policy["kind"] == "budget steps", "this reader knows budget policies"
arrays, unit = policy["arrays"], Fraction(policy["unit"])
states = policy["states"] if isinstance(policy["states"], list) else list(range(policy["states"]))
actions = (
    policy["actions"] if isinstance(policy["actions"], list) else list(range(policy["actions"]))
)


def action(state, spent):
    """The action in a state after so much has been spent: that of the last step up to the budget
    left, risk-neutral below the first.
    """
    s, left = states.index(state), policy["budget"] - math.ceil(Fraction(str(spent)) / unit)
    begin, end = arrays["first"][s], arrays["first"][s + 1]
    step = bisect.bisect_right(arrays["from_budget"], left, begin, end) - 1
    choice = arrays["choice"][step] if step >= begin else arrays["risk_neutral"][s]
    return actions[arrays["choice_action"][choice]] if choice >= 0 else None


for state in states[:10]:
    print(state, [action(state, spent) for spent in (0, float(policy["budget"] * unit) / 2, 10**9)])
