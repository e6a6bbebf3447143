"""All pictures, in one style, as matplotlib Axes for the caller to finish, save or show.

They draw whatever has the fields they need, and compute nothing.
"""
