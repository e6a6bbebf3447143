"""Where the packages with the data have their files; none of their code is run."""

from importlib.util import find_spec
from pathlib import Path

from tailpath.errors import OptionError


def folder_of(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = find_spec(package)
    if found is None or found.origin is None:
        distribution = package.replace("_", "-")
        raise OptionError(f"the package {package} is not installed: pip install {distribution}")
    return Path(found.origin).parent
