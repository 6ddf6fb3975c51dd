"""The command `tfprof`: the modules of its commands, and what they share."""
