"""Odd programs of RDDL: what nobody declared, numbers and sums without end, draws of draws, kinds
that do not fit, texts that were cut.

`ODD` are changes of one sound program, each with what it must be refused for, or `None` where it is
a problem; `program(number)` draws a program of up to six fluents with random rules, a change of the
sound one, or a damaged text of it. What is accepted is held against runs of pyRDDLGym's own
simulator.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import tailpath as tp
from tests.fuzz.damage import damage

DOMAIN = """domain lift {
    types { height : {@low, @mid, @high}; floor : object; };
    pvariables {
        P(floor) : { non-fluent, real, default = 0.25 };
        at : { state-fluent, height, default = @low };
        tries : { state-fluent, int, default = 0 };
        luck(floor) : { interm-fluent, bool };
        go : { action-fluent, bool, default = false };
        leap : { action-fluent, bool, default = false };
    };
    cpfs {
        luck(?f) = Bernoulli(P(?f));
        at' = if (at == @low ^ go) then Discrete(height, @low : 0.25, @mid : 0.5, @high : 0.25)
              else if (at == @mid ^ leap ^ exists_{?f : floor} luck(?f)) then @high else at;
        tries' = min[tries + 1, 7];
    };
    reward = -1 - 2 * leap;
    termination { at == @high; };
    action-preconditions { leap => (at == @mid); };
}
"""
INSTANCE = """non-fluents nf { domain = lift; objects { floor : {f1, f2}; };
    non-fluents { P(f2) = 0.5; }; }
instance one { domain = lift; non-fluents = nf; init-state { tries = 5; };
    max-nondef-actions = 1; horizon = 20; discount = 1.0; }
"""

MANY = "floor : {" + ", ".join(f"f{k}" for k in range(300)) + "}"
REWARD, TRIES, LUCK = "-1 - 2 * leap", "min[tries + 1, 7]", "Bernoulli(P(?f))"
FEW = [("floor : {f1, f2}", MANY), (LUCK, "P(?f) > 0.3")]
EXTRA = "tries : { state-fluent, int, default = 0 };"
BITS = "".join(f" b{k} : {{ state-fluent, bool, default = false }};" for k in range(30))
FLIPS = "".join(f" b{k}' = Bernoulli(0.5);" for k in range(30))
CHAINED = "".join(f" b{k}' = if (b{k - 1}') then Bernoulli(0.5) else b{k};" for k in range(1, 30))

#: What is replaced by what, in the domain and then in the instance; and the refusal, or nothing.
ODD: list[tuple[list[tuple[str, str]], str | None]] = [
    # Names that nobody declared, or declared twice.
    ([(REWARD, "if (windy) then -1 else -7")], "windy"),
    ([(REWARD, "-1 - windy")], "windy"),
    ([(REWARD, "-1 - luck(f9)")], "f9"),
    ([("leap => (at == @mid)", "leap => (at == @top)")], "top"),
    ([("at == @high;", "up;")], "up"),
    ([("tries' =", "tries' = tries; tries' =")], "tries'> is repeated"),
    ([("tries' = min[tries + 1, 7];", "")], "tries'> of type next-state-fluent is not defined"),
    ([("tries' =", "calm' = 1; tries' =")], "calm'> is not declared"),
    ([(EXTRA, EXTRA + EXTRA)], "tries"),
    ([("tries = 5", "calm = 5")], "calm"),
    ([("tries = 5", "tries = 5; tries = 6")], "tries"),
    ([("P(f2) = 0.5", "P(f3) = 0.5")], "f3"),
    ([("P(f2) = 0.5", "Q(f2) = 0.5")], "Q"),
    ([("P(f2) = 0.5", "P(f2) = 0.5; P(f2) = 0.6")], "P"),
    ([("{f1, f2}", "{f1, f1}")], "f1"),
    ([("floor : {f1, f2}", "wall : {f1, f2}")], "floor"),
    ([("?f : floor", "?f : wall")], "wall"),
    ([("exists_{?f : floor}", "exists_{?f : floor, ?f : floor}")], r"\?f"),
    ([("luck(?f))", "luck(?g))")], r"\?g"),
    ([("luck(?f))", "luck(?f, ?f))")], "luck"),
    ([("luck(?f) =", "luck(f1) =")], "luck"),
    ([("luck(?f) =", "luck =")], "luck"),
    ([(TRIES, "tries'")], "tries'"),
    ([("leap => (at == @mid)", "leap => (at' == @mid)")], "at'"),
    ([("default = @low", "default = @top")], "top"),
    # Kinds that do not fit.
    ([(TRIES, "0.5")], "0.5|1/2"),
    ([(TRIES, "@low")], "tries'"),
    ([(LUCK, "P(?f)")], "neither true nor false"),
    ([("at == @low ^ go", "tries ^ go")], "neither true nor false"),
    ([("at == @low ^ go", "tries")], "neither true nor false"),
    ([("at == @high;", "tries;")], "neither true nor false"),
    ([("leap => (at == @mid)", "tries - 5")], "neither true nor false"),
    ([("leap => (at == @mid)", "~tries")], "neither true nor false"),
    ([("at == @high", "at > @low")], "high|height"),
    ([("at == @high", "at == 3")], "height"),
    ([("else at;", "else 3;")], "height|at'"),
    ([(REWARD, "at")], "reward can not be an object"),
    ([(REWARD, "at + 1")], "height"),
    ([(TRIES, "KronDelta(0.5)")], "not a whole number"),
    ([(TRIES, "mod[tries, 0.5]")], "not a whole number"),
    ([("tries = 5", "tries = 0.5")], "tries"),
    ([("tries = 5", "tries = @low")], "low"),
    ([("tries = 5", "at = true")], "refused"),
    ([(EXTRA, "tries : { state-fluent, real, default = 0.5 };")], None),
    # Numbers without end, or none at all.
    ([(TRIES, "pow[10, 1000000000]")], "binary digits"),
    ([(REWARD, "-pow[10, 1000000000]")], "binary digits"),
    ([(REWARD, "-pow[tries, 1000000000]")], "binary digits"),
    ([(REWARD, "-pow[-8, 0.5]")], "not real"),
    ([(TRIES, "tries * tries")], "binary digits"),
    ([(TRIES, "tries * tries + tries")], "binary digits"),
    ([(TRIES, "tries + 1")], "more than"),
    ([(TRIES, "-2 * tries")], "binary digits"),
    ([(EXTRA, "tries : { state-fluent, real, default = 0.5 };"), (TRIES, "tries / 3")], "digits"),
    ([(EXTRA, "tries : { state-fluent, real, default = 0.5 };"), (TRIES, "exp[tries]")], "."),
    ([(REWARD, "-1 / (tries - 6)")], "division by 0"),
    ([(REWARD, "-div[1, tries - 6]")], "division by 0"),
    ([(REWARD, "-ln[tries - 6]")], "the reward"),
    ([(REWARD, "-sqrt[5 - tries]")], "the reward"),
    ([(REWARD, "-exp[1000 * tries]")], "the reward"),
    ([(REWARD, "-1" + "0" * 400)], "."),
    ([(REWARD, "-1" + "0" * 5000)], "."),
    ([(REWARD, "-1e400")], "."),
    ([(REWARD, "-1" + " + 1 - 1" * 3000)], "recursion|nested"),
    ([(REWARD, "-1 - " + "(" * 2000 + "1" + ")" * 2000)], "nested"),
    # Too much of something.
    (
        [(EXTRA, EXTRA + BITS), ("tries' =", FLIPS + " tries' =")],
        "more than 1000000 outcomes of an action",
    ),
    (
        [(EXTRA, EXTRA + BITS), ("tries' =", "b0' = Bernoulli(0.5);" + CHAINED + " tries' =")],
        "more than",
    ),
    ([(EXTRA, EXTRA + BITS.replace("state", "action"))], None),
    (
        [
            (EXTRA, EXTRA + BITS.replace("state", "action")),
            ("max-nondef-actions = 1", "max-nondef-actions = 30"),
        ],
        "joint actions",
    ),
    ([("floor : {f1, f2}", MANY)], "more than 1000000 outcomes of an action"),
    (
        [
            ("floor : {f1, f2}", MANY),
            ("P(floor)", "P(floor, floor, floor, floor)"),
            (LUCK, "Bernoulli(P(?f, ?f, ?f, ?f))"),
            ("P(f2) = 0.5", "P(f2, f2, f2, f2) = 0.5"),
        ],
        "more than",
    ),
    ([("floor : {f1, f2}", MANY), ("luck(floor)", "luck(floor, floor)")], "more than"),
    (
        [
            ("floor : {f1, f2}", MANY),
            (
                REWARD,
                "-[sum_{?a : floor, ?b : floor, ?c : floor, ?d : floor}"
                " (P(?a) * P(?b) * P(?c) * P(?d))]",
            ),
        ],
        "more than",
    ),
    ([*FEW, (REWARD, "-[sum_{?a : floor} P(?a)]")], None),
    ([*FEW, (TRIES, "min[3, sum_{?a : floor} Bernoulli(P(?a))]")], None),
    ([*FEW, (REWARD, "-[prod_{?a : floor} (tries + 1 / P(?a))]")], "."),
    ([("horizon = 20", "horizon = 1000000000")], "more than"),
    ([("horizon = 20", "horizon = 0")], "horizon"),
    ([("horizon = 20", "horizon = -3")], "."),
    ([("horizon = 20;", "")], "."),
    ([("discount = 1.0", "discount = 7.0")], "discount"),
    ([("discount = 1.0", "discount = 0.0")], "discount"),
    ([("max-nondef-actions = 1", "max-nondef-actions = pos-inf")], None),
    ([("max-nondef-actions = 1", "max-nondef-actions = 0")], "."),
    # Draws.
    ([(LUCK, "Bernoulli(Bernoulli(P(?f)))")], None),
    ([(LUCK, "Bernoulli(-1)")], "-1 is not a probability"),
    ([(LUCK, "Poisson(2) > 1")], "Poisson"),
    ([("@mid : 0.5, ", "")], "."),
    ([("@mid : 0.5", "@mid : 0.25")], "not probabilities"),
    ([("@low : 0.25", "@low : -0.25")], "not probabilities"),
    ([("@low : 0.25", "@low : 0.25, @low : 0.25")], "."),
    ([("Discrete(height, @low : 0.25, @mid : 0.5, @high : 0.25)", "switch (at) {}")], "."),
    ([("at == @high", "Bernoulli(0.5)")], "drawn at random"),
    ([("leap => (at == @mid)", "Bernoulli(0.5)")], "drawn at random"),
    # Texts.
    ([("cpfs {", "cpfs { ;")], "Syntax error"),
    ([("reward =", "rewart =")], "."),
    ([("domain lift {", "domain lift {" + " " * 200_000)], None),
    ([(INSTANCE, "")], "."),
    ([(DOMAIN, "")], "."),
    ([(REWARD, "-1 - \N{GREEK SMALL LETTER ALPHA}")], "illegal character"),
    ([("    };\n    reward", "    };\n    state-invariants { tries < 6; };\n    reward")], "invar"),
    ([("    };\n    reward", "    };\n    state-invariants { tries < 9; };\n    reward")], None),
]

Files = dict[str, bytes]


def changed(changes: list[tuple[str, str]]) -> Files:
    domain, instance = DOMAIN, INSTANCE
    for old, new in changes:
        assert old in domain + instance, old
        domain, instance = domain.replace(old, new), instance.replace(old, new)
    return {"domain.rddl": domain.encode(), "instance.rddl": instance.encode()}


def program(number: int) -> Files:
    """The files of one trial."""
    draw = random.Random(f"rddl {number}")
    way = draw.random()
    if way < 0.5:
        return drawn(draw)
    changes = [pair for pairs, _ in draw.sample(ODD, draw.choice([1, 1, 2])) for pair in pairs]
    files = changed([(old, new) for old, new in changes if old in DOMAIN + INSTANCE][:1])
    if way < 0.75:
        victim = draw.choice(sorted(files))
        files[victim] = damage(files[victim], draw)
    return files


# ---------------------------------------------------------------------- random rules

NUMBERS = ["0", "1", "2", "3", "7", "0.5", "0.1", "(-1)", "1000000000", "0.0000000001"]


def drawn(draw: random.Random) -> Files:
    """Up to four state fluents of a random kind, on up to three objects."""
    kinds = [draw.choice(["bool", "bool", "int", "grade"]) for _ in range(draw.randint(1, 4))]
    fluents = {
        f"s{k}" + ("(?o)" if draw.random() < 0.3 else ""): kind for k, kind in enumerate(kinds)
    }
    acting = {**fluents, "act": "bool"}
    start = {"bool": "false", "int": "0", "grade": "@a"}
    declared = [
        f"{name.replace('?o', 'thing')} : {{ state-fluent, {kind}, default = {start[kind]} }};"
        for name, kind in fluents.items()
    ]
    rules = []
    for name, kind in fluents.items():
        inside = ["?o"] if "?o" in name else []
        body = expression(draw, acting, kind, inside, draw.randint(1, 4))
        body = f"max[0, min[{body}, 3]]" if kind == "int" and draw.random() < 0.9 else body
        rules.append(f"{name.replace('(', chr(39) + '(') if inside else name + chr(39)} = {body};")
    reward = expression(draw, acting, "int", [], 3)
    if draw.random() < 0.8:
        reward = draw.choice([f"-abs[{reward}]", f"-1 - abs[{reward}]"])
    over = expression(draw, fluents, "bool", [], 1)
    domain = f"""domain d {{
    types {{ thing : object; grade : {{@a, @b, @c}}; }};
    pvariables {{
        C(thing) : {{ non-fluent, real, default = 0.5 }};
        {" ".join(declared)}
        act : {{ action-fluent, bool, default = false }};
        on(thing) : {{ action-fluent, bool, default = false }};
    }};
    cpfs {{ {" ".join(rules)} }};
    reward = {reward};
    {f"termination {{ {over}; }};" if draw.random() < 0.5 else ""}
}}
"""
    objects = ", ".join(f"o{k}" for k in range(draw.choice([1, 2, 3])))
    instance = f"""non-fluents nf {{ domain = d; objects {{ thing : {{{objects}}}; }};
    non-fluents {{ C(o0) = {draw.choice(["0.25", "1.0", "0.0", "3.0"])}; }}; }}
instance i {{ domain = d; non-fluents = nf; max-nondef-actions = 1;
    horizon = {draw.choice([1, 3, 20])}; discount = {draw.choice(["1.0", "0.5"])}; }}
"""
    return {"domain.rddl": domain.encode(), "instance.rddl": instance.encode()}


def expression(
    draw: random.Random, fluents: dict[str, str], kind: str, inside: list[str], depth: int
) -> str:
    """An expression of a kind; now and then of another."""
    if draw.random() < 0.02:
        kind = draw.choice(["bool", "int", "grade"])

    def part(kind: str, more: tuple[str, ...] = ()) -> str:
        return expression(draw, fluents, kind, [*inside, *more], depth - 1)

    if depth <= 0 or draw.random() < 0.2:
        return leaf(draw, fluents, kind, inside)
    variable = f"?v{depth}"
    over = f"_{{{variable} : thing}}"
    whole = draw.choice(["min", "max"])
    ways: dict[str, list[Callable[[], str]]] = {
        "bool": [
            lambda: f"({part('bool')} {draw.choice(['^', '|', '=>', '<=>'])} {part('bool')})",
            lambda: f"(~{part('bool')})",
            lambda: f"({part('int')} {draw.choice(['<', '>=', '==', '~='])} {part('int')})",
            lambda: f"({part('grade')} == {part('grade')})",
            lambda: f"({draw.choice(['forall', 'exists'])}{over} {part('bool', (variable,))})",
            lambda: f"Bernoulli({draw.choice(['0.5', '0.1', *(f'C({each})' for each in inside)])})",
            lambda: f"(if ({part('bool')}) then {part('bool')} else {part('bool')})",
        ],
        "int": [
            lambda: f"({part('int')} {draw.choice(['+', '-', '*'])} {part('int')})",
            lambda: f"({part('int')} / {draw.choice(['2', part('int')])})",
            lambda: f"{whole}[{part('int')}, {part('int')}]",
            lambda: f"{draw.choice(['abs', 'sgn', 'floor', 'round', 'exp'])}[{part('int')}]",
            lambda: f"[{draw.choice(['sum', 'prod', 'avg'])}{over} {part('int', (variable,))}]",
            lambda: f"(if ({part('bool')}) then {part('int')} else {part('int')})",
            lambda: f"pow[{part('int')}, {part('int')}]",
            lambda: f"div[{part('int')}, {part('int')}]",
        ],
        "grade": [
            lambda: f"(if ({part('bool')}) then {part('grade')} else {part('grade')})",
            lambda: "Discrete(grade, @a : 0.5, @b : 0.25, @c : 0.25)",
        ],
    }
    return draw.choice(ways[kind])()


def leaf(draw: random.Random, fluents: dict[str, str], kind: str, inside: list[str]) -> str:
    named = [
        name
        for name, other in fluents.items()
        if other == kind and (inside or "?o" not in name) and draw.random() < 0.7
    ]
    if named:
        return draw.choice(named).replace("?o", draw.choice(inside or ["?o"]))
    if kind == "bool":
        return draw.choice(["true", "false", *(f"on({each})" for each in inside)])
    return draw.choice(NUMBERS if kind == "int" else ["@a", "@b", "@c"])


# ---------------------------------------------------------------------- another simulator


def check(source: str, ssp: tp.SSP) -> None:
    """Runs of pyRDDLGym's simulator are runs of the model without its horizon, at the same cost."""
    from pyRDDLGym.core.simulator import RDDLSimulator

    from tailpath_cases.rddl import checked, files_of

    if "costs are minus the rewards" not in ssp.notes or any("bonus" in note for note in ssp.notes):
        return
    try:
        endless = tp.read(source, constants={"horizon": "none"})
    except tp.TailpathError:
        return
    model = checked(*files_of(source.removeprefix("rddl:"), source), source)
    if "real" in model.state_ranges.values():
        return  # we have rationals
    simulator = RDDLSimulator(model)
    simulator.seed(1)
    draw = random.Random(endless.n_outcomes)
    for _ in range(5):
        state = named(simulator.reset()[0])
        for _ in range(5):
            action = drawn_action(draw, endless, state)
            on = [] if action == "noop" else map(plain, action.split(" & "))
            try:  # those that are not named are off
                told = simulator.prepare_actions_for_sim(dict.fromkeys(on, True))
                after, reward, _ = simulator.step(told)
            except (ArithmeticError, ValueError, TypeError):
                return  # it works out both sides of an if
            if abs(reward) >= 2**53:
                return  # integers overflow there
            known = named(after) if named(after) in endless.states else "done"
            costs = costs_of(endless, state, action, known)
            assert any(abs(cost + reward) <= 1e-9 * max(1, abs(reward)) for cost in costs), (
                f"{state} goes by {action} to {known} at {-reward}, not {costs}"
            )
            state = known
            if state == "done":
                break


def drawn_action(draw: random.Random, ssp: tp.SSP, state: str) -> str:
    at = ssp.state_index(state)
    first, end = int(ssp.state_choices[at]), int(ssp.state_choices[at + 1])
    return str(ssp.choice_name(draw.randrange(first, end)))


def plain(fluent: str) -> str:
    """`on(a,b)` as the simulator writes it."""
    name, _, objects = fluent.rstrip(")").partition("(")
    return f"{name}___{objects.replace(',', '__')}" if objects else name


def costs_of(ssp: tp.SSP, state: str, action: str, target: str) -> list[float]:
    """What going from one state to another by an action may cost."""
    choice = ssp.choice_index(ssp.state_index(state), action)
    span = range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1])
    to = ssp.state_index(target)
    return [float(ssp.outcome_cost[o]) for o in span if ssp.outcome_target[o] == to]


def named(values: dict[str, Any]) -> str:
    parts = []
    for name, value in values.items():
        plain, _, objects = name.partition("___")
        spelled = f"{plain}({objects.replace('__', ',')})" if objects else plain
        if value is True or (not isinstance(value, str) and value.dtype == bool and value):
            parts.append(spelled)
        elif isinstance(value, str) or value.dtype != bool:
            parts.append(f"{spelled}={value}")
    return " ".join(parts) or "nothing"
