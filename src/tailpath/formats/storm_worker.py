"""Storm in a process of its own: run as a script, with one request on standard input and the answer
in a folder.

Storm is compiled code that a hostile file can crash, hang or let grow without end. Here that does
no harm: the process has a limit of memory, its parent one of time, and whatever happens to it the
parent sees an exit code. The script imports nothing of ours, so that it starts quickly.

It is two processes: one builds, in compiled code that cannot react to anything, the other watches.
When standard input ends, for example because the parent was killed, the watcher ends the builder
and removes the folder.

    request   {"path", "constants", "expressions": [..], "property", "bytes", "states", "folder"} on
              one line
    answer    folder/model.umb and folder/answer.json: {"names", "labels": {expression: label},
              "property": {"formula", "goal", "cost", ..}, "properties": [names]}, or {"error"} or
              {"missing": [constants]}
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import sys
from typing import Any

import stormpy
import stormpy.io
from stormpy import developer

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

_TYPE = re.compile(
    r"^\s*(dtmc|mdp|ctmc|ctmdp|ma|pta|pomdp|popta|smg|probabilistic|nondeterministic|stochastic)\b",
    re.MULTILINE,
)
_COMMENT = re.compile(r"//.*")
#: A property that has a goal, as Storm prints it: `limit` bounds the steps, or the rewards `paid`,
#: on the way, and `bound` the value.
_PROPERTY = re.compile(
    r'(?:R(?:\[exp\])?(?:\{"(?P<cost>[^"]*)"\})?|P)(?:min|max)?(?:=\?|(?P<bound>[<>]=?\S+)) '
    r'\[(?:F|true U(?:steps|rew\{"(?P<paid>[^"]*)"\})?(?:<=?(?P<limit>\S+))?) (?P<goal>.*)\]'
)


class Refusal(Exception):
    """What is wrong with the request, in one line."""


def watched(folder: str) -> None:
    """Continue in a child. The process itself only waits for it, or for its own parent to end,
    and ends with the child's exit code, or 128 + its signal.
    """
    builder_ends, until_it_ends = os.pipe()
    builder = os.fork()
    if builder == 0:
        os.close(builder_ends)  # the other end closes when this process ends
        return
    os.close(until_it_ends)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it as well, and will end
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    finished = False
    try:
        ready = select.select([0, builder_ends], [], [])[0]
        finished = builder_ends in ready
    finally:
        if not finished:
            os.kill(builder, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(builder, 0)[1])
        if not finished:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(code if code >= 0 else 128 - code)


def main() -> None:
    with os.fdopen(0, "rb", buffering=0, closefd=False) as stream:
        request = json.loads(stream.readline())
    if hasattr(os, "fork"):
        watched(request["folder"])
    # Storm logs to standard output and standard error; the answer goes to a file.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        answer = build(request)
    except Refusal as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "not enough memory"}
    except Exception as error:  # Storm has no common type of errors
        answer = {"error": " ".join(str(error).split())[:300] or type(error).__name__}
    with open(
        os.path.join(request["folder"], "answer.json"),
        "w",
        encoding="utf-8",
        errors="backslashreplace",
    ) as stream:
        json.dump(answer, stream)
        stream.flush()
    # The destructors of a large model, or of one that Storm did not finish, are not worth waiting
    # for.
    os._exit(0)


def build(request: dict[str, Any]) -> dict[str, Any]:
    limit_memory(request["bytes"])
    developer.set_log_level(developer.LogLevel.OFF)
    program = parse_program(request["path"], request["folder"])
    if request["constants"]:
        program, _ = stormpy.io.instantiate_constants(program, request["constants"])
    missing = [constant.name for constant in program.constants if not constant.defined]
    if missing:
        return {"missing": missing}
    chosen = property_of(program, request["path"], request["property"])
    goals = [goal for goal in (chosen.get("goal"),) if goal]
    formulas, labels = label_expressions(program, [*request["expressions"], *goals])
    model = explore_program(program, formulas, request["path"])
    if model.nr_states > request["states"]:
        raise Refusal(f"Storm found {model.nr_states} states; the limit is {request['states']}")
    stormpy.io.export_to_umb(model, os.path.join(request["folder"], "model.umb"))
    return {
        "names": names_of(model, program),
        "labels": labels,
        "property": chosen,
        "properties": properties_with_goals(program, request["path"]),
    }


def explore_program(program: Any, formulas: list[Any], path: str) -> Any:
    """The model, if no update leaves the range of its variable: unchecked, Storm would go on with
    another value.
    """

    def options() -> Any:
        # Given one formula alone, Storm would not explore beyond the states that decide it.
        chosen = stormpy.BuilderOptions(formulas + formulas)
        chosen.set_build_all_labels()
        chosen.set_build_all_reward_models()
        chosen.set_build_choice_labels()
        chosen.set_build_state_valuations()
        # Never average a reward over destinations.
        chosen.set_scale_and_lift_transition_rewards(False)
        return chosen

    checked = options()
    checked.set_exploration_checks(True)
    try:
        return stormpy.build_model(program, options=checked)
    except Exception as error:
        if "interval updates" in str(error):
            return stormpy.build_model[stormpy.Interval](program, options=checked)
        if not re.search("update probabilities|sum to one", str(error)) or moves_together(path):
            raise
    # Its checks refuse sums that miss 1 by rounding, such as seven times 1/7, which we check
    # ourselves: look for the other fault alone.
    probe = stormpy.BuilderOptions([])
    probe.set_add_out_of_bounds_state(True)
    labels = stormpy.build_model(program, options=probe).labeling
    if labels.contains_label("out_of_bounds") and any(
        True for _ in labels.get_states("out_of_bounds")
    ):
        raise Refusal("an update sets a variable to a value outside its bounds")
    return stormpy.build_model(program, options=options())


def moves_together(path: str) -> bool:
    """Whether automata of a JANI model may move together: only Storm's checks notice if two of them
    write one variable in one step. PRISM has no such models.
    """
    if not path.lower().endswith(".jani"):
        return False
    with open(path, encoding="utf-8-sig") as stream:
        return len(json.load(stream)["automata"]) > 1


def limit_memory(most: int) -> None:
    """Let the process grow by `most` bytes from here on, if the system can enforce it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            now = int(stream.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + most, now + most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (AttributeError, OSError, ValueError):
        pass


def parse_program(path: str, folder: str) -> Any:
    if path.lower().endswith(".jani"):
        return stormpy.parse_jani_model(path)[0]
    with open(path, encoding="utf-8-sig", errors="replace") as stream:
        text = stream.read()
    if _TYPE.search(_COMMENT.sub("", text)):
        return stormpy.parse_prism_program(path)
    # PRISM treats a program without a type as an MDP; Storm needs the type. It goes on the first
    # line, so that lines keep their numbers.
    path_name = os.path.join(folder, "program.prism")
    with open(path_name, "w", encoding="utf-8") as stream:
        stream.write(f"mdp {text}")
    return stormpy.parse_prism_program(path_name)


def formulas_of(program: Any, path: str) -> dict[str, str]:
    """The properties of a JANI model, or those in the file beside a program."""
    stem, suffix = os.path.splitext(path)
    files = [f"{stem}.{ending}" for ending in ("props", "pctl", "csl")]
    beside = next(filter(os.path.exists, files), None)
    if suffix.lower() == ".jani":
        found = stormpy.parse_jani_model(path)[1]
    elif beside is None:
        raise Refusal(
            f"put the properties into a file next to the program, {os.path.basename(files[0])}"
        )
    else:
        with open(beside, encoding="utf-8-sig") as stream:
            found = stormpy.parse_properties(stream.read(), program)
    return {each.get_name(): str(each.get_raw_formula()) for each in found}


def properties_with_goals(program: Any, path: str) -> list[str]:
    """The names of the properties that could be asked for; none if they cannot be read."""
    try:
        formulas = formulas_of(program, path)
    except Exception:  # Storm has no common type of errors
        return []
    return [name for name, formula in formulas.items() if _PROPERTY.fullmatch(formula)]


def property_of(program: Any, path: str, name: str | None) -> dict[str, Any]:
    """The parts of a property, found by name in a JANI model or in the file beside a program."""
    if name is None:
        return {}
    formulas = formulas_of(program, path)
    if name not in formulas:
        raise Refusal(f"no property {name!r}; choose among: {', '.join(formulas) or '(none)'}")
    match = _PROPERTY.fullmatch(formulas[name])
    if match is None:
        raise Refusal(f"the property {name!r} is {formulas[name]}, which has no goal to reach")
    parts = match.groupdict()
    goal, cost = parts["goal"].removeprefix('"').removesuffix('"'), parts["cost"] or parts["paid"]
    return {**parts, "formula": formulas[name], "goal": goal, "cost": cost}


def label_expressions(program: Any, expressions: list[str]) -> tuple[list[Any], dict[str, str]]:
    """Formulas that make Storm label the states where each expression holds, and the label of each;
    names of labels are not expressions.
    """
    formulas, labels = [], {}
    for text in expressions:
        if '"' in text or ";" in text or "[" in text or "]" in text or "\n" in text:
            raise Refusal(f"{text!r} is neither a label nor a condition on the variables")
        try:
            formula = stormpy.parse_properties(f"P=? [F ({text})]", program)[0].get_raw_formula()
        except Exception:
            continue  # neither; the caller lists the known labels
        formulas.append(formula)
        labels[text] = str(formula).removeprefix("P=? [F ").removesuffix("]")
    return formulas, labels


def names_of(model: Any, program: Any) -> list[str]:
    """Names such as `x=1 & ready=true`. Without JANI's transient variables, and locations of
    automata that have only one.
    """
    transient = {
        variable.name
        for variable in getattr(program, "global_variables", ())
        if getattr(variable, "is_transient", False)
    }
    parts: list[list[str]] = []
    for variable in sorted(
        model.state_valuations.get_all_variables(), key=lambda variable: variable.index
    ):
        if variable.name in transient:
            continue
        if variable.has_boolean_type():
            values = ["false"] * model.nr_states
            for state in model.state_valuations.get_boolean_values(variable):
                values[state] = "true"
        elif variable.has_integer_type():
            values = [str(value) for value in model.state_valuations.get_int64_values(variable)]
        else:
            continue
        if not (variable.name.startswith("_loc_") and len(set(values)) == 1):
            parts.append([f"{variable.name}={value}" for value in values])
    return [" & ".join(part) for part in zip(*parts)]


if __name__ == "__main__":
    main()
