"""The main loop of the agent."""

import subprocess
import sys
import time
from pathlib import Path

from fakes.polling import until
from tfprof.agent import launches
from tfprof.commands.daemons import read_status
from tfprof.formats import runtime_dir

#: An agent that writes a launch of its parent process while it ends for the first time.
SCRIPT = """
import os, sys, time
from tfprof.agent import launches
from tfprof.agent.daemon import service
from tfprof.agent.launches import Launch
stop = service.Agent.stop
def begin_launch_and_stop(agent):
    service.Agent.stop = stop
    launches.write(agent.instance_dir, Launch(7, os.getppid(), time.time_ns(), sys.argv[1], "host", "user"))
    stop(agent)
service.Agent.stop = begin_launch_and_stop
sys.exit(service.serve(sys.argv[1], 0.3))
"""


def test_an_idle_agent_serves_a_launch_that_begins_while_it_ends(private_store: Path) -> None:
    instance_dir = runtime_dir.make_instance(str(private_store))

    def start_ns() -> int:
        return int((read_status(instance_dir, "agent") or {}).get("started_ns", 0))

    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(private_store)]) as agent:
        first_ns = until(start_ns, "the agent")
        until(lambda: start_ns() != first_ns, "the agent of the launch")
        launch = launches.read(instance_dir, 7)
        assert launch is not None
        launches.write(instance_dir, launch._replace(ended_ns=time.time_ns()))
        assert agent.wait(30) == 0
