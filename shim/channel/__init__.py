"""The channel: shared memory that a job writes and the agent reads."""
