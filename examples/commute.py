"""A way to work: which question is asked decides which way is best. Draws the pictures of
docs/objectives.md into the folder given.
"""

from __future__ import annotations

import pathlib
import sys

import matplotlib.pyplot as plt

import tailpath as tp

ROADS = [  # from, by, to, probability, minutes
    ("home", "train", "work", 0.85, 33),
    ("home", "train", "work", 0.15, 37),
    ("home", "motorway", "junction", 0.90, 10),
    ("home", "motorway", "junction", 0.10, 22),
    ("home", "city", "bridge", 0.70, 13),
    ("home", "city", "bridge", 0.30, 16),
    ("junction", "motorway", "work", 0.88, 12),
    ("junction", "motorway", "work", 0.12, 34),
    ("junction", "back road", "work", 0.80, 19),
    ("junction", "back road", "work", 0.20, 24),
    ("bridge", "over it", "work", 0.95, 14),
    ("bridge", "over it", "work", 0.05, 29),
    ("bridge", "tunnel", "work", 0.50, 20),
    ("bridge", "tunnel", "work", 0.50, 22),
]
QUESTIONS = {
    "best on average": "mean",
    "least CVaR at 0.05": "cvar(0.05)",
    "most often on time": "late(35)",
}
PLACES = {"home": (0, 0), "junction": (1.1, 0.9), "bridge": (1.1, -0.9), "work": (2.6, 0)}
COLOURS = dict(zip(QUESTIONS, ("#1b6ca8", "#b5532a", "#3c7d3c")))
BENDS = {
    "train": 0.0,
    "motorway": 0.16,
    "back road": -0.16,
    "over it": -0.16,
    "tunnel": 0.16,
    "city": 0.0,
}


def ways(policy: tp.Policy, ssp: tp.SSP) -> dict[tuple[str, str], set[float]]:
    """Where a policy goes by which road, and at which times of the day (minutes since
    the start).
    """
    found: dict[tuple[str, str], set[float]] = {}
    waiting = [("home", policy.start("home"), 0.0)]
    while waiting:
        state, memory, minutes = waiting.pop()
        if state in ssp.goals:
            continue
        action = policy.action(state, memory)
        found.setdefault((state, str(action)), set()).add(minutes)
        for row in ROADS:
            if row[:2] == (state, action):
                waiting.append(
                    (
                        row[2],
                        policy.remember(memory, state, action, float(row[4]), row[2]),
                        minutes + row[4],
                    )
                )
    return found


def draw_map(
    ax: plt.Axes, title: str, taken: dict[tuple[str, str], set[float]], colour: str
) -> None:
    """The roads, with the minutes each may take; those taken in colour."""
    for place, name, target in dict.fromkeys(row[:3] for row in ROADS):
        used, bend = taken.get((place, name)), BENDS[name] if place != "home" else 0.0
        style = {
            "color": colour if used else "#bbbbbb",
            "linewidth": 2.6 if used else 1.0,
            "connectionstyle": f"arc3,rad={bend}",
        }
        ax.annotate(
            "",
            PLACES[target],
            PLACES[place],
            arrowprops={"arrowstyle": "-|>", "shrinkA": 14, "shrinkB": 16, **style},
        )
        minutes = " or ".join(f"{row[4]}" for row in ROADS if row[:2] == (place, name))
        (x0, y0), (x1, y1) = PLACES[place], PLACES[target]
        x, y = (x0 + x1) / 2 + bend * (y1 - y0) * 0.5, (y0 + y1) / 2 - bend * (x1 - x0) * 0.5
        when = (
            ""
            if not used or place == "home"
            else "\nafter " + ", ".join(f"{m:g}" for m in sorted(used))
        )
        ax.text(
            x,
            y,
            f"{name}: {minutes}{when}",
            ha="center",
            va="center",
            fontsize=7,
            color=colour if used else "#777777",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
    for name, (x, y) in PLACES.items():
        ax.text(
            x,
            y,
            name,
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round", "facecolor": "#eeeeee", "edgecolor": "#555555"},
        )
    ax.set_title(title, fontsize=9, color=colour)
    ax.set_xlim(-0.35, 3.0)
    ax.set_ylim(-1.25, 1.25)
    ax.axis("off")


def main(folder: pathlib.Path) -> None:
    ssp = tp.SSP.from_outcomes(ROADS, "home", ["work"])
    found = {title: tp.solve(ssp, question) for title, question in QUESTIONS.items()}
    for title, answer in found.items():
        print(
            f"{title:20}",
            *(f"{m} = {answer.risk(m):.4g}" for m in ("mean", "cvar(0.05)", "late(35)")),
            sep="   ",
        )

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for ax, (title, answer) in zip(axes, found.items()):
        draw_map(ax, title, ways(answer.policy, ssp), COLOURS[title])
    figure.savefig(folder / "commute-policies.png", dpi=110)

    figure, axes = plt.subplots(3, 1, figsize=(7, 5), sharex=True, layout="constrained")
    for ax, (title, answer) in zip(axes, found.items()):
        costs = answer.costs_for("late(60)")
        late = costs.costs > 35
        ax.bar(costs.costs[~late], costs.probabilities[~late], color=COLOURS[title])
        ax.bar(costs.costs[late], costs.probabilities[late], color=COLOURS[title], alpha=0.4)
        ax.axvline(35.5, color="#333333", linewidth=0.8, linestyle="--")
        late_share, cvar = answer.risk("late(35)"), answer.risk("cvar(0.05)")
        ax.set_title(
            f"{title}: mean {costs.mean:.1f}, late with {100 * late_share:.1f} %, CVaR {cvar:.1f}",
            fontsize=9,
            loc="left",
        )
        ax.set_ylabel("probability", fontsize=8)
    axes[-1].set_xlabel("minutes; the dashed line is the deadline, 35")
    figure.savefig(folder / "commute-distributions.png", dpi=110)

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, measure in zip(axes, ("cvar(0.05)", "late(35)")):
        tp.frontier(ssp, measure).plot(ax)
        ax.set_title(f"what safety costs: mean against {measure}", fontsize=9)
    figure.savefig(folder / "commute-frontier.png", dpi=110)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
