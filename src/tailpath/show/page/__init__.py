"""One self-contained page of HTML that explains a model, in plain SVG and JavaScript: it needs no
server and asks no one for anything.
"""
