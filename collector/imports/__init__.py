"""Imports files of the TF profiler as rows of the store's tables."""
