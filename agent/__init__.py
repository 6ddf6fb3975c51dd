"""What runs on the host beside the jobs: the launcher, and the daemon that drains their channels."""
