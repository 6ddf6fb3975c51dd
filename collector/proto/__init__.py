"""Generated protobuf modules of the messages that tfprof's users read and write.

The messages are profiles, op logs, views, options, pprof.
"""
