"""tfprof-run: starts a job, forwards signals to it, prints a report at its end."""
