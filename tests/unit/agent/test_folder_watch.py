"""Files that appear in a folder."""

import select

from tfprof.agent.folder_watch import FolderWatch


def is_ready(watch, ms=0):
    poll = select.poll()
    poll.register(watch.fd, select.POLLIN)
    return bool(poll.poll(ms))


def test_a_file_that_appears_is_reported_until_the_watch_is_cleared(tmp_path):
    watch = FolderWatch(str(tmp_path))
    assert not is_ready(watch)
    for number in range(300):
        (tmp_path / ("a" * 100 + str(number))).touch()
    assert is_ready(watch, 5_000)
    watch.clear()
    assert not is_ready(watch)
    draft = tmp_path / ".draft"
    draft.touch()
    watch.clear()
    draft.rename(tmp_path / "whole")
    assert is_ready(watch, 5_000)
    watch.close()
    watch.close()


def test_a_missing_folder_is_not_watched(tmp_path):
    watch = FolderWatch(str(tmp_path / "nowhere"))
    assert watch.fd == -1
    watch.clear()
    watch.close()
