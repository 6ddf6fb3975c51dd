"""The tfprof command: one file a command."""
