"""Generated protobuf modules of the messages that users read and write: profiles, op logs, views, options, pprof."""
