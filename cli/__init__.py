"""The command `tfprof`: a module for each command."""
