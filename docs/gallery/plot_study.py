"""
The figures of a study
======================

``tailpath study --out DIR`` draws these and others, as PDF and PNG, from stored runs; ``tailpath
report DIR`` draws them again. They are kept here, since the runs take long.
"""

names = ["values", "variants", "varying_atoms", "beyond_optimum", "planning_time", "monte_carlo"]
pictures = [f"../pictures/study_{name}.png" for name in names]
