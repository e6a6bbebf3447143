"""One model over the ranks of MPI: parts with ghost rows, and the sweeps of `dp` inside them."""
