"""Generated protobuf modules of the messages that users read and write.

These are profiles, op logs, views, options and pprof files.
"""
