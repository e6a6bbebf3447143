"""The published planners CVaRVIQ and CVaRVILI, on a grid of confidence levels."""
