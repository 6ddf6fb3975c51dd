"""The spool: messages on this host's disk that wait for a collector on another host."""
