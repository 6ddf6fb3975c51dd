"""Generated protobuf modules of the messages that users read and write.

These are GraphDefs, RunMetadata, checkpoints, profiles, op logs, views, options and pprof files.
"""
