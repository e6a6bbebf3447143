"""A planner from outside, as a user of the package would write it: one file, one call."""

from tailpath import MarkovPolicy, evaluate
from tailpath.methods import Method, Option, Plan, register


def plan(ssp, alpha, *, progress, which=0):
    """Take the same choice of the list in every state, and say what that costs."""
    taken = {
        state: ssp.choice_name(ssp.state_choices[k] + which)
        for k, state in enumerate(ssp.states)
        if not ssp.is_goal[k]
    }
    policy = MarkovPolicy(taken)
    progress(1, 0.0)
    return Plan(
        lambda a: policy,
        lambda a: evaluate(ssp, policy, a).cvar(a),
        note=f"choice {which} everywhere",
        facts={"which": which},
    )


TOY = Method(
    name="toy",
    title="Toy",
    summary="the same choice everywhere",
    plan=plan,
    options=(Option("which", int, 0, "Which choice.", "K", least=0),),
    risk_neutral=False,
)
register(TOY)
