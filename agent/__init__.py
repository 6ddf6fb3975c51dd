"""Programs that run on the host beside the jobs: launcher, attach helper and agent."""
