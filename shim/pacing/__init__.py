"""Decides which steps are traced, and accounts for the cost."""
