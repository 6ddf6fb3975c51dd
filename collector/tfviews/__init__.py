"""Computes the four views from stored data, without reading or writing files."""
