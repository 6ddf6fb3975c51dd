"""What depends on the version of CPython; version.py lists the known ones."""
