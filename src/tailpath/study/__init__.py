"""The paper's experiments, as a user of the library.

    design      what is asked: a list of tasks
    work        one task, computed
    executors   processes of this machine, or a Dask cluster
    runner      what is missing is computed, and stored when it is finished
    program     who computed it: version, model, machine
    results     stored runs, looked up
    claims      the paper's claims beside ours;  tables, figures, boxes, canvas: what a reader sees

`tailpath.study.store` keeps the runs, `tailpath.study.report` writes the page.
"""
