"""Importers of the TF profiler's files: their content as rows of the store's tables."""
