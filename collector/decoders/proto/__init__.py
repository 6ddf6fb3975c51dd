"""Generated protobuf modules of the messages that tfprof decodes without TensorFlow."""
