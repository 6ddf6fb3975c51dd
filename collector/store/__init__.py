"""The store directory: write-ahead log, segments, rollups, and reading them while they are written."""
