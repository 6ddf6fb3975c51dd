"""Decoders of TensorFlow's records into Arrow columns."""
