"""The package `umbi` as a witness: it validates what we write, and we read what it writes."""

import pytest

import tailpath as tp
from tests.formats.models import samples
from tests.uncertain.reference import random_model

umbi = pytest.importorskip("umbi", reason="the extra `validation` is not installed")


@pytest.mark.parametrize("name", samples())
def test_our_files_are_valid(name, tmp_path):
    ssp = samples()[name]
    tp.write(ssp, tmp_path / "m.umb")
    decoder = umbi.umb.umb_to_tar.UmbDecoder(tmp_path / "m.umb")
    umb = decoder.decode(strict=True)
    umb.validate()
    n_goals = int(ssp.is_goal.sum())
    system = umb.index.transition_system
    assert (system.num_states, system.num_choices, system.num_branches) == (
        ssp.n_states,
        ssp.n_choices + n_goals,
        ssp.n_outcomes + n_goals,
    )
    assert [state for state, initial in enumerate(umb.state_is_initial) if initial] == [
        ssp.start_index
    ]
    assert umb.annotations["aps"]["goal"]["states"] == ssp.is_goal.tolist()


@pytest.mark.parametrize("name", ["awkward", "gridworld", "counter-example"])
def test_a_model_passes_through_umbi(name, tmp_path):
    ssp = samples()[name]
    tp.write(ssp, tmp_path / "ours.umb")
    umbi.ats.write(umbi.ats.read(tmp_path / "ours.umb"), tmp_path / "theirs.umb")
    again = tp.read(tmp_path / "theirs.umb")
    assert (
        again.n_states == ssp.n_states and again.outcome_cost.tolist() == ssp.outcome_cost.tolist()
    )
    assert again.outcome_target.tolist() == ssp.outcome_target.tolist()
    assert again.outcome_probability.tolist() == ssp.outcome_probability.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_intervals_pass_through_umbi(seed, tmp_path):
    model = random_model(seed).intervals()
    tp.write(model, tmp_path / "ours.umb")
    umb = umbi.umb.umb_to_tar.UmbDecoder(tmp_path / "ours.umb").decode(strict=True)
    umb.validate()
    umbi.ats.write(umbi.ats.read(tmp_path / "ours.umb"), tmp_path / "theirs.umb")
    again = tp.read(tmp_path / "theirs.umb")
    assert (again.low.tolist(), again.high.tolist()) == (model.low.tolist(), model.high.tolist())
    assert again.inside.outcome_cost.tolist() == model.inside.outcome_cost.tolist()
