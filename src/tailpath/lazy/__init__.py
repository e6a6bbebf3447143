"""The least CVaR of models that cannot be listed, between two bounds that close."""
