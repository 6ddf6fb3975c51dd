"""The path of data from the agent to the collector: message queues and connection."""
