"""Programs that run on the host beside the jobs: the launcher and the agent daemon."""
