"""Runs code in Jupyter kernels for those who ask on port 49999, as E2B's code interpreter does."""
