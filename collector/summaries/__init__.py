"""Summarizes the steps, jobs, spans and samples of a store."""
