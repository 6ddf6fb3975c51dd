"""Answers questions about jobs.

Reads the store, builds the nodes that views fold, and returns documents.
"""
