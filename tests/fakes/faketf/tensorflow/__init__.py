"""A fake TensorFlow for every interpreter, quick to import: sessions without a computation."""
