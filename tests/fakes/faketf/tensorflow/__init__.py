"""A TensorFlow that is quick to import and runs in every interpreter: the shape of its sessions, no computation."""
