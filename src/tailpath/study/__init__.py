"""Experiments with methods of the register, as a user of the library.

    design      what is asked: a list of tasks
    work        one task, computed; and by whom
    runner      what is missing is computed, by processes of this machine or a Dask cluster
    store       the runs, in one file
    results     stored runs, looked up

`tailpath.study.paper` has the paper's design, its claims beside ours, and the page with tables and
figures.
"""
