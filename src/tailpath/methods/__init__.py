"""One interface for all planners, and the register that `solve`, `compare` and `study` use."""

from tailpath.methods.method import (
    Method,
    Plan,
    find_method,
    method_names,
    register,
)
from tailpath.options import Option

__all__ = [
    "Method",
    "Option",
    "Plan",
    "find_method",
    "method_names",
    "register",
]
