"""The docstrings of the public names: numpydoc sections that name the parameters there are with
types, examples that run, and a list of all names and signatures. After a change that is meant,
`python -m tests.test_docstrings` writes the list again.
"""

import dataclasses
import doctest
import inspect
import pathlib
import re
import runpy
from itertools import product

import pytest

import tailpath as tp
from tailpath.domains.register import REGISTER as DOMAINS
from tailpath.errors import OptionError
from tailpath.formats.registry import REGISTER as FORMATS
from tailpath.methods.method import REGISTER as METHODS
from tailpath.risk.measure import REGISTER as MEASURES

HERE = pathlib.Path(__file__).parent
SNAPSHOT = HERE / "public_names.txt"
REFERENCE = runpy.run_path(str(HERE.parent / "docs" / "make_reference.py"))
REGISTERS = DOMAINS, FORMATS, METHODS, MEASURES
#: Methods that only the package calls; they need no example.
INSIDE = {
    "moved",
    "as_limit",
    "solved",
    "on",
    "parsed",
    "plain_mean",
    "refuse_zero_cost_traps",
    "remember_roughly",
    "restored",
    "step_at",
    "steps",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public():
    """Every public name with what it names: of the package and its modules, what functions
    return, and their members.
    """
    named = {name: getattr(tp, name) for name in tp.__all__ if name != "__version__"}
    found = {name: thing for name, thing in named.items() if not inspect.ismodule(thing)}
    for name in named.keys() - found.keys():
        things = {f"{name}.{one}": getattr(named[name], one) for one in named[name].__all__}
        found |= {one: thing for one, thing in things.items() if not inspect.ismodule(thing)}
    for thing in [*filter(inspect.isfunction, found.values())]:
        found |= {
            kind.__name__: kind
            for kind in REFERENCE["returned"](thing)
            if kind not in found.values()
        }
    for name, kind in [*found.items()]:
        if inspect.isclass(kind):
            fields = (
                [field.name for field in dataclasses.fields(kind)]
                if dataclasses.is_dataclass(kind)
                else []
            )
            members = {
                one: getattr(kind, one, thing)
                for one, thing in REFERENCE["members"](kind)
                if one not in fields
            }
            found |= {f"{name}.{one}": thing for one, thing in members.items()}
    return dict(sorted(found.items()))


PUBLIC = public()


def doc(thing):
    return inspect.getdoc(getattr(thing, "func", thing)) or ""


def sections(text):
    """The text of each section by its title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def described(section):
    """The names of a section, by lines at its margin: several of them with commas between, and
    then their type.
    """
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    assert all(" : " in line for line in lines), "every parameter has a type"
    names = [line.partition(" : ")[0].split(",") for line in lines]
    return [name.strip().lstrip("*") for each in names for name in each]


def is_called(thing):
    return inspect.isfunction(thing) or inspect.ismethod(thing)


def parameters(thing):
    """The parameters of a function, a method or a class, without hints and `self`; None of what is
    not called.
    """
    made = (
        inspect.isclass(thing)
        and "__init__" in vars(thing)
        and not getattr(thing, "_is_protocol", False)
    )
    if not made and not is_called(thing):
        return None
    found = inspect.signature(thing).parameters.values()
    return [
        one.replace(annotation=one.empty)
        for one in found
        if one.name != "self" and not one.name.startswith("_")
    ]


def is_for_users(name):
    """Whether a class, a function or a method is one that users make or call."""
    thing, inside = PUBLIC[name], name.rpartition(".")[2] in INSIDE
    return (inspect.isclass(thing) or is_called(thing)) and not inside


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_described(name):
    thing, text = PUBLIC[name], doc(PUBLIC[name])
    found = sections(text)
    assert text.partition("\n")[0].endswith((".", ":")), "the first line is a sentence"
    said = described(
        found.get("Parameters", found.get("Attributes", "") if inspect.isclass(thing) else "")
    )
    assert said == [one.name for one in parameters(thing) or ()]
    if is_called(thing) and inspect.signature(thing).return_annotation != "None":
        assert "Returns" in found or "Yields" in found
    assert max(map(len, text.splitlines())) <= 96


@pytest.mark.parametrize("name", [name for name in PUBLIC if is_for_users(name)])
def test_every_class_and_method_has_an_example(name):
    assert ">>>" in doc(PUBLIC[name])


@pytest.mark.parametrize("name", [name for name in PUBLIC if ">>>" in doc(PUBLIC[name])])
def test_examples_run(name, tmp_path, monkeypatch):
    """Each with the names that the example of the package makes: a small model and the costs of a
    policy on it.
    """
    monkeypatch.chdir(tmp_path)
    for register in REGISTERS:
        monkeypatch.setattr(register, "added", {})
    scope = {}
    for text in (tp.__doc__, doc(PUBLIC[name])):
        test = doctest.DocTestParser().get_doctest(text, scope, name, None, None)
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        said = []
        runner.run(test, out=said.append, clear_globs=False)
        scope = test.globs
        assert not runner.failures, "".join(said)


def listed():
    """All names, each with its signature; what a default is made of stands there, not where it lies
    in memory.
    """
    called = {name: parameters(thing) for name, thing in PUBLIC.items()}
    lines = [
        name if found is None else f"{name}{inspect.Signature(found)}"
        for name, found in called.items()
    ]
    return re.sub(r" at 0x[0-9a-f]+", "", "\n".join(lines)) + "\n"


def test_the_public_names_are_those_of_the_list():
    assert listed() == SNAPSHOT.read_text(encoding="utf-8"), (
        "`python -m tests.test_docstrings` writes the list again"
    )


def test_whatever_takes_an_alpha_answers_confidence():
    # Methods are told what the user was asked.
    apart = {"methods.Method.make"}
    model = tp.read("textbook:lottery")
    asked = 0
    for name, thing in PUBLIC.items():
        found = {parameter.name for parameter in parameters(thing) or ()}
        if found & {"alpha", "alphas", "a"} and "confidence" not in found and name not in apart:
            own = inspect.isclass(thing) and name not in {"CVaR", "VaR"}  # the program makes these
            if not own:
                asked += 1
                first = model if "ssp" in found else None
                with pytest.raises(OptionError, match="instead of confidence="):
                    thing(first, confidence=0.95)
    assert asked > 40


def test_whatever_takes_a_model_says_how_to_read_one():
    asked = [
        thing
        for thing in PUBLIC.values()
        if inspect.isfunction(thing) and [*inspect.signature(thing).parameters][:1] == ["ssp"]
    ]
    assert len(asked) > 20
    for verb, given in product(asked, ({"from": ["home"]}, "roads.csv", [("home", "road")])):
        what = "a model or a chain" if verb is tp.write else "a model"
        told = f"^{verb.__name__} takes {what}, not a {type(given).__name__}; tailpath.read makes"
        path = ["x.json"] if verb is tp.write else []
        with pytest.raises(OptionError, match=told):
            verb(given, *path)
        with pytest.raises(OptionError, match=told):
            verb(**{"ssp": given} | dict(zip(["path"], path)))


if __name__ == "__main__":
    SNAPSHOT.write_text(listed(), encoding="utf-8")
