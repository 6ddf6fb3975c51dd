"""Answers to questions about jobs: what is read of the store, the nodes that views fold, and how the answer is delivered."""
