"""Generated protobuf modules of the few messages that are read without TensorFlow."""
