"""The paper's experiments: its design, its claims beside ours, its figures and tables.

    paper.toml       its design, read by `claim`
    planners, atoms  what it says, judged by the stored runs
    figures, tables  what a reader sees; canvas has what figures share
    report           the page, for a study of one's own as well

Here methods have names, those of the paper's planners. Nothing but the command line imports this.
"""
