"""Summaries: folds over steps, jobs, spans and samples."""
