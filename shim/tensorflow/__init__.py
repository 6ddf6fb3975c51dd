"""What is patched in TensorFlow and Keras, and what is recorded there."""
