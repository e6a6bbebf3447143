"""You have a model in the PRISM language, and P=? and R=? answer for the average only.

Run: python examples/prism_user.py
"""

import pathlib
import tempfile

import tailpath as tp

ALPHA = 0.1
PROGRAM = """
mdp
const int N;
module job
  done : [0..N] init 0;
  [careful] done<N -> (done'=done+1);
  [hasty]   done<N -> 0.9:(done'=done+1) + 0.1:(done'=0);
endmodule
rewards "time"
  [careful] true : 3;
  [hasty] true : 1;
endrewards
label "finished" = done=N;
"""

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "job.prism"
    path.write_text(PROGRAM)
    # Storm builds the model; the label is the goal, the reward structure the cost.
    ssp = tp.read(path, constants={"N": 5}, goal="finished", cost="time")
    # Any other tool that reads DRN or UMB can have it, too.
    tp.write(ssp, path.with_suffix(".umb"))
    print(
        f"{path.with_suffix('.umb').name}: {path.with_suffix('.umb').stat().st_size} bytes,"
        f" {ssp.n_states} states"
    )

average = tp.solve_expected(ssp)
best = tp.solve_cvar_exact(ssp, alpha=ALPHA)
for name, policy in (("least mean", average.policy), ("least CVaR", best.policy(ALPHA))):
    costs = tp.evaluate(ssp, policy, alpha=1e-6)
    print(
        f"{name}: mean {costs.mean:6.3f}   P(time <= 15) {costs.cdf(15):.4f}   CVaR"
        f" {costs.cvar(ALPHA):6.3f}"
    )
print(f"the policy with the least CVaR decides by what is left of a budget of {best.var(ALPHA):g}")
