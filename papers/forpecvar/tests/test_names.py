"""The paper's names lead somewhere: the search of the site, the help and the commands know them."""

import json
import pathlib
import pydoc
import re

import pytest

import tailpath as tp

ROOT = pathlib.Path(__file__).parents[3]
#: As the paper writes them.
NAMES = [
    *("ForPECVaR", "Forward-PECVaR", "CVaRVILI", "CVaRVIQ", "CreateExtendedMDP", "V_mean", "V_min"),
    *("MDPPolicyEvaluation", "PolicyEvaluation", "PolicyEvaluationDeterminizedMDP"),
    *("insertAndGroup", "getHighestPriorityState", "alpha0", "alpha_target", "Gridworld", "River"),
    *("Theorem 2", "Algorithm 1", "risk envelope", "policy augmented state", "proper policy"),
    *("admissible heuristic", "approximate value", "exact value", "interpolation atoms"),
    *("Monte Carlo simulation", "log distance", "execution time"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The words of docs/paper.md as the search of the site has them."""
    sphinx = pytest.importorskip("sphinx.application")
    pytest.importorskip("myst_parser")
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.md").write_text((ROOT / "docs" / "paper.md").read_text("utf-8"), "utf-8")
    extensions = {"extensions": ["myst_parser"], "master_doc": "index"}
    out = folder / "out"
    sphinx.Sphinx(
        folder, None, out, folder / "trees", "html", extensions, status=None, warning=None
    ).build()
    text = (out / "searchindex.js").read_text("utf-8")
    found = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return {*found["terms"], *found["titleterms"]}


@pytest.mark.parametrize("name", NAMES)
def test_the_search_of_the_site_finds_it(index, name):
    """All words of it, stemmed and without stop words, as the page of the search splits them."""
    english = pytest.importorskip("sphinx.search.en").SearchEnglish({})
    words = [word for word in re.findall(r"\w+", name.lower()) if not word.isdigit()]
    assert {english.stem(word) for word in words if english.word_filter(word)} <= index


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (tp.evaluate, "ForPECVaR"),
        (tp.unroll, "CreateExtendedMDP"),
        (tp.solve_cvar_quantile, "CVaRVIQ"),
        (tp.solve_cvar_interpolation, "CVaRVILI"),
        (tp.simulate, "Monte Carlo"),
        (tp.log_atoms, "the paper's Y"),
        (tp.solve_expected, "the paper's V*"),
        (tp.solve_cvar_exact, "the paper's Eq. 8"),
        (tp.HistoryPolicy, "the paper's h"),
        (tp.CostDistribution.cvar, "Corollary 1"),
        (tp.CostDistribution.cdf, "the paper's P^X"),
        (tp.CostDistribution.envelope, "Eqs. 6 and 7"),
        (tp.CostChain, "MDPPolicyEvaluation"),
        (tp.AtomPolicy, "Eq. 19"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_help_has_it_once(thing, name):
    text = pydoc.render_doc(thing, renderer=pydoc.plaintext).partition("Methods defined here")[0]
    assert name in " ".join(text.split())
    assert len(re.findall(r"\((?:[Tt])he paper's", " ".join((thing.__doc__ or "").split()))) <= 1
