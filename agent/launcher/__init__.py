"""tfprof-run: starts a job, passes signals on, reports at its end."""
