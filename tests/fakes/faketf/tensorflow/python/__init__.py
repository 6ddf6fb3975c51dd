"""A fake of the package `tensorflow.python`: it has sessions only."""
