"""Policies by place and time: a line for each place, a mark for each decision that is met."""

import tailpath as tp


def drawn(choose):
    ssp = tp.clock(
        "home",
        lambda place, time: ["bus", "walk"],
        lambda place, action, time: (
            [(0.5, "stop", 2), (0.5, "work", 3)] if action == "bus" else [(1, "work", 9)]
        ),
        lambda place: place == "work",
        until=4,
    )
    return tp.policy(ssp, choose).plot(ssp)


def test_places_times_and_actions():
    axes = drawn(lambda at: "bus" if at.time < 4 else "walk")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["home", "stop", "work"]
    marks = {mark.get_label(): mark.get_offsets().tolist() for mark in axes.collections}
    assert marks == {"bus": [[0, 0], [2, 1]], "walk": [[4, 1]]}
    lines = sorted(
        [list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))]
        for line in axes.lines
    )
    assert lines == [
        [[0, 2], [0, 1]],
        [[0, 3], [0, 2]],
        [[2, 4], [1, 1]],
        [[2, 5], [1, 2]],
        [[4, 13], [1, 2]],
    ]


def test_only_what_is_met():
    axes = drawn(lambda at: "walk")
    assert [mark.get_label() for mark in axes.collections] == ["walk"] and len(axes.lines) == 1
