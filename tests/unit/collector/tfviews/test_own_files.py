"""The user's files in stacks."""

from fakes.nodes import node, with_stack
from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.places import own_files


def own_names(*files: str) -> list[str]:
    """Return the user's files among ``files``; each is the file of a frame of one node."""
    return own_files([with_stack(node("a", "Add"), *(Frame(file, 1, "f") for file in files)), node("b", "Add")])


def test_files_of_packages_and_of_python_are_not_the_users() -> None:
    user_files = ["/home/ada/python/train.py", "nets/model.py", "/srv/lib/python/data.py"]
    foreign_files = [
        "/venv/lib/python3.11/site-packages/tensorflow/python/framework/ops.py",
        "/usr/lib/python3/dist-packages/six.py",
        "/usr/lib/python3.11/runpy.py",
        "<frozen runpy>",
        "<stdin>",
        "",
    ]
    assert own_names(*foreign_files, *user_files) == ["train.py", "model.py", "data.py"]
    assert own_names(*foreign_files) == []


def test_each_name_is_listed_once_in_order_of_first_use() -> None:
    assert own_names("b/m.py", "a/m.py", "a/l.py", "b/m.py") == ["m.py", "l.py"]
