"""The public names, each listed once: for type checkers, and for `__init__.py`."""

from tailpath import domains as domains
from tailpath import formats as formats
from tailpath import methods as methods
from tailpath import pictures as pictures
from tailpath import risk as risk
from tailpath.errors import TailpathError as TailpathError
from tailpath.errors import TailpathWarning as TailpathWarning
from tailpath.evaluation.band import CostBand as CostBand
from tailpath.evaluation.distribution import CostDistribution as CostDistribution
from tailpath.evaluation.estimation import Estimate as Estimate
from tailpath.evaluation.estimation import estimate as estimate
from tailpath.evaluation.evaluate import evaluate as evaluate
from tailpath.evaluation.simulation import simulate as simulate
from tailpath.formats import read as read
from tailpath.formats import write as write
from tailpath.formats.policy_files import read_policy as read_policy
from tailpath.formats.policy_files import write_policy as write_policy
from tailpath.lazy.solve import solve_cvar_lazy as solve_cvar_lazy
from tailpath.methods.comparison import compare as compare
from tailpath.model.clock import clock as clock
from tailpath.model.durations import durations as durations
from tailpath.model.endings import give_up as give_up
from tailpath.model.endings import within as within
from tailpath.model.implicit import ImplicitSSP as ImplicitSSP
from tailpath.model.interval import IntervalSSP as IntervalSSP
from tailpath.model.ssp import SSP as SSP
from tailpath.pictures.distributions import plot_tails as plot_tails
from tailpath.policies.atoms import AtomPolicy as AtomPolicy
from tailpath.policies.atoms import log_atoms as log_atoms
from tailpath.policies.budget import BudgetPolicy as BudgetPolicy
from tailpath.policies.chain import CostChain as CostChain
from tailpath.policies.given import policy as policy
from tailpath.policies.kinds import HistoryPolicy as HistoryPolicy
from tailpath.policies.kinds import MarkovPolicy as MarkovPolicy
from tailpath.policies.kinds import MemoryPolicy as MemoryPolicy
from tailpath.policies.kinds import MixedPolicy as MixedPolicy
from tailpath.policies.policy import Policy as Policy
from tailpath.policies.unrolling import unroll as unroll
from tailpath.progress import show_progress as show_progress
from tailpath.risk.entropic import Entropic as Entropic
from tailpath.risk.evar import EVaR as EVaR
from tailpath.risk.expectile import Expectile as Expectile
from tailpath.risk.measures import CVaR as CVaR
from tailpath.risk.measures import Late as Late
from tailpath.risk.measures import Loss as Loss
from tailpath.risk.measures import Mean as Mean
from tailpath.risk.measures import Shortfall as Shortfall
from tailpath.risk.measures import VaR as VaR
from tailpath.risk.spectral import Spectral as Spectral
from tailpath.risk.variance import MeanDeviation as MeanDeviation
from tailpath.risk.variance import Variance as Variance
from tailpath.show.differences import differences as differences
from tailpath.show.page.make import page as page
from tailpath.show.runs import trace as trace
from tailpath.show.runs import worst_runs as worst_runs
from tailpath.solvers.arrival import given_arrival as given_arrival
from tailpath.solvers.arrival import solve_arrival as solve_arrival
from tailpath.solvers.exact.solver import solve_cvar_exact as solve_cvar_exact
from tailpath.solvers.expectation import solve_expected as solve_expected
from tailpath.solvers.objectives.frontier import frontier as frontier
from tailpath.solvers.objectives.on_time import solve_on_time as solve_on_time
from tailpath.solvers.objectives.solve import solve as solve
from tailpath.solvers.published.planners import (
    solve_cvar_interpolation as solve_cvar_interpolation,
)
from tailpath.solvers.published.planners import solve_cvar_quantile as solve_cvar_quantile

__version__: str
