"""Answers questions about jobs: reads the store, builds the nodes that views fold, and returns documents."""
