"""Text files, byte for byte what plain writers make of the same model."""

import numpy as np
import pytest
from hypothesis import given

import tailpath as tp
from tailpath.formats.drn import writable_action as drn_action
from tailpath.formats.json_files import FORMAT
from tailpath.formats.long_table import _cell, _cost_text
from tailpath.formats.prism_explicit import writable_action as prism_action
from tailpath.formats.table_text import encode
from tailpath.formats.writing import action_words, extras_line
from tests.formats.models import by_choice, many_numbers, samples
from tests.reference import to_ssp
from tests.strategies import any_models


def rows_of(ssp, state):
    """Choice, its number in the state, target, probability and cost of every outcome of a state."""
    for choice in range(ssp.state_choices[state], ssp.state_choices[state + 1]):
        for outcome in range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1]):
            numbers = (ssp.outcome_target, ssp.outcome_probability, ssp.outcome_cost)
            yield (
                choice,
                choice - ssp.state_choices[state],
                *(column[outcome].item() for column in numbers),
            )


def costs_differ(ssp, choice):
    costs = ssp.outcome_cost[ssp.choice_outcomes[choice] : ssp.choice_outcomes[choice + 1]]
    return costs.min() != costs.max()


def plain_table(ssp):
    lines = ["idstatefrom,idaction,idstateto,probability,cost"]
    cells = [_cell(encode(name)) for name in ssp.states]
    for state in [
        ssp.start_index,
        *(state for state in range(ssp.n_states) if state != ssp.start_index),
    ]:
        for choice, _, target, probability, cost in rows_of(ssp, state):
            action = _cell(encode(ssp.choice_name(choice)))
            lines.append(
                f"{cells[state]},{action},{cells[target]},{probability!r},{_cost_text(ssp, cost)}"
            )
    return {"m.csv": "\n".join(lines) + "\n"}


def plain_prism(ssp):
    word = action_words(ssp, prism_action)
    tra, trew, lab, extra = [], [], ['0="init" 1="goal"'], {}
    for state in range(ssp.n_states):
        if ssp.is_goal[state]:
            tra.append(f"{state} 0 {state} 1.0")
        labels = ["0"] * (state == ssp.start_index) + ["1"] * bool(ssp.is_goal[state])
        lab += [f"{state}: {' '.join(labels)}"] if labels else []
        seen = set()
        for choice, number, target, probability, cost in rows_of(ssp, state):
            if costs_differ(ssp, choice) and cost:
                target, cost = extra.setdefault((target, cost), ssp.n_states + len(extra)), 0
            tra.append(
                f"{state} {number} {target} {probability!r} {word(int(ssp.choice_action[choice]))}"
            )
            if cost and (choice, target) not in seen:
                trew.append(f"{state} {number} {target} {cost!r}")
                seen.add((choice, target))
    for (target, cost), number in extra.items():
        tra.append(f"{number} 0 {target} 1.0")
        trew.append(f"{number} 0 {target} {cost!r}")
    n_states, n_more = ssp.n_states + len(extra), np.count_nonzero(ssp.is_goal) + len(extra)
    sizes, structure = f"{n_states} {ssp.n_choices + n_more}", '# Reward structure "cost"'
    files = {
        "m.tra": [f"#{extras_line(ssp, len(extra))}", f"{sizes} {len(tra)}", *tra],
        "m.trew": [structure, f"{sizes} {len(trew)}", *trew],
        "m.srew": [structure, f"{n_states} 0"],
        "m.lab": lab,
    }
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def plain_drn(ssp):
    word = action_words(ssp, drn_action)
    extra, body = {}, []
    for state in range(ssp.n_states):
        goal = bool(ssp.is_goal[state])
        body.append(f"state {state} [0]{' init' * (state == ssp.start_index)}{' goal' * goal}")
        body += ["\taction __NOLABEL__ [0.0]", f"\t\t{state} : 1.0"] * goal
        open_choice = -1
        for choice, _, target, probability, cost in rows_of(ssp, state):
            mixed = costs_differ(ssp, choice)
            if choice != open_choice:
                body.append(
                    f"\taction {word(int(ssp.choice_action[choice]))} [{0.0 if mixed else cost!r}]"
                )
                open_choice = choice
            onward = (
                extra.setdefault((target, cost), ssp.n_states + len(extra))
                if mixed and cost
                else target
            )
            body.append(f"\t\t{onward} : {probability!r}")
    for (target, cost), number in extra.items():
        body += [f"state {number} [0]", f"\taction __NOLABEL__ [{cost!r}]", f"\t\t{target} : 1.0"]
    n_choices = ssp.n_choices + np.count_nonzero(ssp.is_goal) + len(extra)
    head = [
        "// Written by tailpath",
        f"//{extras_line(ssp, len(extra))}",
        "@type: MDP",
        "@value_type: double",
        "@parameters",
        "",
    ]
    sizes = [
        "@reward_models",
        "cost",
        "@nr_states",
        str(ssp.n_states + len(extra)),
        "@nr_choices",
        str(n_choices),
        "@model",
    ]
    return {"m.drn": "\n".join([*head, *sizes, *body]) + "\n"}


PLAIN = {"csv": plain_table, "tra": plain_prism, "drn": plain_drn}


def compare(ssp, suffix, folder):
    """Whether the format can hold the model; if so, its files must be those of the plain writer."""
    for path in folder.iterdir():
        path.unlink()
    try:
        tp.write(ssp, folder / f"m.{suffix}")
    except tp.TailpathError:
        return False
    expected = {
        name: text.encode("utf-8", "backslashreplace") for name, text in PLAIN[suffix](ssp).items()
    }
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected
    return True


@pytest.mark.parametrize("suffix", PLAIN)
def test_files_are_those_of_a_plain_writer(suffix, tmp_path):
    assert sum(compare(model, suffix, tmp_path) for model in samples().values()) > 4


@pytest.mark.parametrize("suffix", PLAIN)
def test_large_files_are_those_of_a_plain_writer(suffix, tmp_path):
    """Some blocks; the second model has more different numbers than a block has lines."""
    rows = [
        "".join("#" if (7 * k + row) % 31 == 0 else "." for k in range(90)) for row in range(80)
    ]
    for model in (
        tp.domains.gridworld("\n".join([*rows, "G" + "." * 88 + "S"])),
        many_numbers(12_600),
    ):
        assert model.n_outcomes > 100_000 and compare(model, suffix, tmp_path)


@given(model=any_models())
def test_random_files_are_those_of_a_plain_writer(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("m")
    for suffix in PLAIN:
        compare(to_ssp(model), suffix, folder)


def test_json_has_one_row_per_outcome(tmp_path):
    """Its rows, as JSON reads them, are those of the model; the text of a row is the one of the
    page.
    """
    tp.write(by_choice(), tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    assert text.startswith(
        f'{{\n  "format": "{FORMAT}",\n  "version": 1,\n  "start": 1,\n'
    ) and text.endswith("]\n  ]\n}\n")
    assert (
        '"outcomes": [\n    [0, "left", 1, 0.25, 1.5],\n    [0, "left", 2, 0.75, 1.5],\n    [0,'
        ' "right", 3, 1.0, 0.0],\n' in text
    )
