"""Seeing what a policy does: its runs, the worst of them, what is to blame, where two policies
part, and one page about all of it.
"""
