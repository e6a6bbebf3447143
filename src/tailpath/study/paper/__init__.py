"""The paper's experiments: its design, its claims beside ours, its figures and tables. Here methods
have names, those of the paper's planners. Nothing but the command line imports this.
"""
