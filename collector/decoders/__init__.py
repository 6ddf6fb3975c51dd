"""From what TensorFlow recorded to columns."""
