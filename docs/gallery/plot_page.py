"""
One page that explains a model
==============================

``tailpath page river:10x10 --out page.html``: one HTML file that any browser shows, offline. Alpha,
the budget and the runs move. Here is what it looks like, the last one for a model with intervals;
the file takes a few seconds to make.
"""

# sphinx_gallery_thumbnail_number = 1
pictures = [
    "../pictures/page-river.png",
    "../pictures/page-gridworld.png",
    "../pictures/page-roads.png",
    "../pictures/page-band.png",
]
