"""Generated protobuf modules of the messages that tfprof's users read and write: profiles, op logs, views, options, pprof."""
