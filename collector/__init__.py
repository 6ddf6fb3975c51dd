"""What receives, stores and shows profiles: the daemon, the store and everything read from it."""
