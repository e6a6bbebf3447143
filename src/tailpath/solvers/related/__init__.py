"""Other authors' algorithms, written as they describe them, for comparison with ours."""
