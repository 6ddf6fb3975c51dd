"""The four views: pure folds of stored data."""
