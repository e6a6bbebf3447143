"""You have a table of roads, and being late once in a while is what worries you.

Run: python examples/roads.py
"""

import pandas as pd

import tailpath as tp

# One row per way a leg can turn out: minutes, and how often it takes that long.
roads = pd.DataFrame(
    [
        ("home", "highway", "bridge", 0.90, 15),
        ("home", "highway", "bridge", 0.10, 45),
        ("home", "back road", "bridge", 1.00, 22),
        ("bridge", "tunnel", "work", 0.97, 10),
        ("bridge", "tunnel", "work", 0.03, 90),
        ("bridge", "ferry", "work", 0.50, 16),
        ("bridge", "ferry", "work", 0.50, 28),
    ],
    columns=["from", "action", "to", "p", "time"],
)
ssp = tp.read(roads, start="home", goals=["work"])

# On average the fastest way; and the way whose worst 5 % of all days are best. "95 % confidence" is
# alpha = 0.05.
average, careful = tp.solve_expected(ssp), tp.solve_cvar_exact(ssp, alpha=0.05)
print(tp.compare(ssp, {"average": average, "careful": careful}, [0.05]))

# What to do under way: the careful policy looks at the minutes it has left.
policy = careful.policy(0.05)
for minutes in (15, 22, 45):
    runner = policy.start_run()
    first = runner.action("home")
    runner.observe(minutes, "bridge")
    print(f"{first}, and after {minutes} minutes at the bridge: {runner.action('bridge')}")

# The distribution goes back into a table.
print(tp.evaluate(ssp, policy, alpha=0.001).to_pandas())
