"""Starts a job's script again in several roles, and ends all of these processes with the job."""

import json
import os
import subprocess
import sys

TIMEOUT_S = 90


def start(role, **environment):
    """Start the running script in a role; return the process."""
    command = [sys.executable, sys.argv[0], role]
    return subprocess.Popen(command, env=dict(os.environ, **environment), stdout=subprocess.PIPE)


def finish(processes, servers=()):
    """Wait for the processes, print their output, end the servers, exit with the worst status."""
    try:
        for process in processes:
            sys.stdout.write(process.communicate(timeout=TIMEOUT_S)[0].decode())
    finally:
        for server in servers:
            server.terminate()
        for process in [*processes, *servers]:
            if process.poll() is None and process not in servers:
                process.kill()
            process.wait()
    sys.stdout.flush()
    sys.exit(max(abs(process.returncode) for process in processes))


def tf_config(cluster, kind, index):
    """Return the TF_CONFIG of a task."""
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
