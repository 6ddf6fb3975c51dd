"""Samples have the columns of the store, and counters never shrink."""

import os
import subprocess
import sys

import pytest
from tfprof.agent import processes
from tfprof.agent.daemon import host
from tfprof.agent.daemon.host import HostSampler, TreeSampler
from tfprof.collector.store import schema
from tfprof.formats.ids import ALL_THREADS


def tree() -> list[processes.Process]:
    return processes.process_tree(processes.all_pids()).subtree(os.getpid(), frozenset())


def test_samples_have_the_columns_of_the_store() -> None:
    columns = [*schema.SAMPLES.names, *schema.THREAD_SAMPLES.names[1:], "busy_threads"]
    assert ["t_ns", *TreeSampler().sample(tree())] == columns
    assert ["t_ns", *TreeSampler().sample([])] == schema.SAMPLES.names
    assert ["t_ns", *HostSampler().sample()] == schema.HOST_SAMPLES.names


def test_an_ended_child_counts_with_its_last_usage() -> None:
    sampler = TreeSampler()
    code = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        with_child = sampler.sample(tree())
        child.stdin.close()
    without_child = sampler.sample(tree())
    assert without_child["processes"] == with_child["processes"] - 1
    assert without_child["cpu_user_s"] >= with_child["cpu_user_s"] > 0.2
    assert without_child["read_bytes"] >= with_child["read_bytes"]
    assert without_child["rss_bytes"] < with_child["rss_bytes"]
    assert sampler.sample([])["processes"] == 0
    assert sampler.sample([])["cpu_user_s"] >= without_child["cpu_user_s"]


def test_a_sample_of_the_host_has_memory_processors_and_busy_time() -> None:
    sample = HostSampler().sample()
    assert sample["cpus"] == os.cpu_count()
    assert 0 < sample["memory_available_bytes"] <= sample["memory_total_bytes"]
    assert sample["cpu_busy_s"] > 0


@pytest.mark.parametrize("devices", ["vda eth0", ""])
def test_bytes_of_a_disk_or_an_interface_count_once(monkeypatch, tmp_path, devices: str) -> None:
    disks, interfaces = ["vda", "loop0", "dm-0"], ["lo", "eth0", "bond0"]
    for folder, names in {"block": disks, "net": interfaces}.items():
        for name in names:
            (tmp_path / folder / name / ("device" if name in devices.split() else "other")).mkdir(parents=True)
    lines = {
        "/proc/diskstats": [b" 7 0 %s 1 0 3 1 1 0 5 1" % name.encode() for name in (*disks, "vda1")],
        "/proc/net/dev": [b"", b"", *(b"  %s: 7 0 0 0 0 0 0 0 9 0" % name.encode() for name in interfaces)],
    }
    monkeypatch.setattr(host, "_DISKS", bytes(tmp_path / "block"))
    monkeypatch.setattr(host, "_INTERFACES", bytes(tmp_path / "net"))
    monkeypatch.setattr(host, "_lines", lambda path: lines.get(path, []))
    sample = HostSampler().sample()
    disk_count, interface_count = (1, 1) if devices else (3, 2)
    assert (sample["disk_read_bytes"], sample["disk_write_bytes"]) == (3 * 512 * disk_count, 5 * 512 * disk_count)
    assert (sample["net_received_bytes"], sample["net_sent_bytes"]) == (7 * interface_count, 9 * interface_count)


def test_the_main_thread_has_its_own_times() -> None:
    code = """
import threading, time
def work():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: pass
thread = threading.Thread(target=work)
thread.start(); thread.join(); print(1, flush=True); input()"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        process = processes.process(child.pid)
        assert process is not None
        sample = TreeSampler().sample([process])
        child.stdin.close()
    assert sample["cpu_user_s"] + sample["cpu_system_s"] >= sample["main_cpu_s"] + 0.2
    assert sample["main_cpu_s"] > 0
    assert 0 <= sample["main_queued_s"] <= sample["queued_s"]
    assert processes.thread_times(process) is None  # it has ended


def test_threads_that_use_a_cpu_are_in_the_next_sample() -> None:
    code = """
import threading, time
def work():
    end = time.thread_time() + 0.3
    print(threading.get_native_id(), flush=True)
    input()
    while time.thread_time() < end: pass
    print(1, flush=True)
    input()
threading.Thread(target=work).start()"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        thread = int(child.stdout.readline())
        process, sampler = processes.process(child.pid), TreeSampler()
        assert process is not None
        assert sampler.sample([process])["busy_threads"] == []
        print(file=child.stdin, flush=True)
        child.stdout.readline()
        ((busy, cpu_s),) = sampler.sample([process])["busy_threads"]
        assert sampler.sample([process])["busy_threads"] == []
        print(file=child.stdin, flush=True)
    assert busy == thread
    assert 0.2 < cpu_s < 1


def test_the_time_of_the_jobs_own_process_is_in_samples_of_several_processes() -> None:
    code = """
import subprocess, sys, time
end = time.process_time() + 0.2
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1)
print(child.pid, flush=True)
while input() == "work":
    while time.process_time() < end: pass
    end += 0.3
    print(1, flush=True)
child.communicate(b"1")"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as own:
        stdin, stdout = own.stdin, own.stdout
        assert stdin is not None
        assert stdout is not None
        sampler, child, process = TreeSampler(), processes.process(int(stdout.readline())), processes.process(own.pid)
        assert child is not None
        assert process is not None

        def sample_after_work(*sampled: processes.Process) -> list[tuple[int, float]]:
            print("work", file=stdin, flush=True)
            stdout.readline()
            return [row for row in sampler.sample(sampled)["busy_threads"] if row[0] == ALL_THREADS]

        assert sample_after_work(process) == []  # the only process
        ((_, cpu_s),) = sample_after_work(process, child)
        assert 0.2 < cpu_s < 1
        ((_, cpu_s),) = sample_after_work(process)  # its child has ended
        assert 0.2 < cpu_s < 1
        print("end", file=stdin, flush=True)
