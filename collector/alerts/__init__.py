"""Detects anomalies of running jobs from their step times, memory and counters."""
