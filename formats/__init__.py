"""What crosses a border between processes: channel, messages, settings, errors, folders. Standard library, Python 3.7."""
