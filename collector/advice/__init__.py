"""Advice on performance.

A checker is a pure function of the evidence about a job. `table` lists the checkers.
"""
