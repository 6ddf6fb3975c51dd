"""The patches of TensorFlow and Keras, and what they record."""
