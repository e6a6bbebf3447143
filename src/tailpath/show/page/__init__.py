"""One self-contained page of HTML that explains a model: `make.page` builds it, `data.py` collects
what it shows, `page.js` draws it in the reader's browser. Plain SVG and JavaScript, a hundredth of
the size of a plotting library: the page needs no server and asks no one for anything.
"""
