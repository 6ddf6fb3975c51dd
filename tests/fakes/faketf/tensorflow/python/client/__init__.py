"""A fake of the package `tensorflow.python.client`: sessions, and the C interface for them."""
