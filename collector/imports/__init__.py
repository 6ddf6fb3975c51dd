"""Readers of the files of TensorFlow's own tfprof: what is in them as rows of the store's tables, or why it cannot be."""
