"""Views: pure folds of what the store holds."""
