"""The experiments of the ForPECVaR paper, as a user of `tailpath`: `README.md`."""
