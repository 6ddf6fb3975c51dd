"""A fake TensorFlow that every tested Python imports quickly. Its sessions compute x + 1."""
