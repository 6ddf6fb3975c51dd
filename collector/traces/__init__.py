"""The neutral model of a trace, which timelines and profiles of all formats are written from.

A trace is a stream of parts: processes, tracks, slices, curves and marks. It is read from the store
in batches, so its size does not matter.
"""
