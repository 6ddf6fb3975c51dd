"""From the agent to the collector: queue and connection."""
