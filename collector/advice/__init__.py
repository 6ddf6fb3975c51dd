"""Advice: what could be faster, from evidence; a checker is a function of evidence, and one row of the table."""
