"""Programs: what a table is used for, and what a release in its place costs people. One file each."""

from targetdp.programs.aid import TOGO_ADULTS, Aid, AidResult, Welfare
from targetdp.programs.base import Model, Program, Result
from targetdp.programs.comparison import Comparison, Entry, baselines, classic, compare
from targetdp.programs.cost import Change, Changes, changes
from targetdp.programs.estimator import Imported, model_of
from targetdp.programs.folds import Folds
from targetdp.programs.lending import Lending, LendingResult, Loans, loans_at_rates
from targetdp.programs.logistic import Logistic
from targetdp.programs.ridge import Ridge

__all__ = [
    "TOGO_ADULTS",
    "Aid",
    "AidResult",
    "Change",
    "Changes",
    "Comparison",
    "Entry",
    "Folds",
    "Imported",
    "Lending",
    "LendingResult",
    "Loans",
    "Logistic",
    "Model",
    "Program",
    "Result",
    "Ridge",
    "Welfare",
    "baselines",
    "changes",
    "classic",
    "compare",
    "loans_at_rates",
    "model_of",
]
