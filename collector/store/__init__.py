"""The folder of a store: write-ahead logs, segments and rollups.

It can be read while it is written.
"""
