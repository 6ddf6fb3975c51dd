"""Folds over steps, jobs, spans and samples."""
