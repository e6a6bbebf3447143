"""All pictures, in one style, as matplotlib Axes for the caller to finish, save or show.

They draw whatever has the fields they need, and compute nothing.
"""

from tailpath.pictures.style import Look, look
from tailpath.progress import progress_line

__all__ = ["Look", "look", "progress_line"]
