"""The folder of a store: write-ahead log, segments, rollups, and reading them while they are written."""
