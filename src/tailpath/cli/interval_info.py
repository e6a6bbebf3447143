"""What `info` says of a model whose probabilities are intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.analysis.nature import NATURES, almost_sure_under_nature
from tailpath.cli.output import some
from tailpath.model.interval import IntervalSSP
from tailpath.texts import name, number, pairs


def info(model: IntervalSSP, source: str) -> tuple[dict[str, Any], str]:
    """What `info` tells."""
    width = (model.high - model.low)[
        np.repeat(model.rest > 0, np.diff(model.inside.choice_outcomes))
    ]
    start = model.inside.start_index
    record: dict[str, Any] = {
        "model": source,
        "states": model.n_states,
        "choices": model.n_choices,
        "outcomes": model.n_outcomes,
        "uncertain_choices": model.n_uncertain,
        "width": {"mean": float(width.mean()), "max": float(width.max())} if len(width) else None,
        "may_be_withheld": int(np.count_nonzero(model.low == 0)),
        "confidence": model.confidence,
        "start": model.start,
        "goals": list(model.goals),
        "cost_unit": model.cost_unit,
        "start_surely_reaches_a_goal": {
            nature: bool(almost_sure_under_nature(model, side)[0][start])
            for nature, side in NATURES.items()
        },
        "notes": list(model.notes),
    }
    almost_sure = record["start_surely_reaches_a_goal"]
    wide = (
        f"{number(float(width.mean()), 3)} wide on average, {number(float(width.max()), 3)} at most"
        if len(width)
        else "none"
    )
    rows = [
        ("model", source),
        ("states", str(model.n_states)),
        ("choices", f"{model.n_choices}, of which {model.n_uncertain} have intervals"),
        ("outcomes", f"{model.n_outcomes}; {record['may_be_withheld']} may have probability 0"),
        ("intervals", wide),
        *(
            [("confidence", f"{100 * model.confidence:g} % that all intervals hold")]
            if model.confidence is not None
            else []
        ),
        (
            "cost unit",
            (
                str(model.cost_unit)
                if model.cost_unit is not None
                else "none: the costs have no usable common unit"
            ),
        ),
        ("start", name(model.start)),
        ("goals", f"{len(model.goals)}: {some(list(model.goals))}"),
        (
            "goal surely reached",
            ", ".join(
                f"{'yes' if holds else 'no'} ({nature} nature)"
                for nature, holds in almost_sure.items()
            ),
        ),
    ]
    return record, pairs(rows)
