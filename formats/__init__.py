"""Formats shared between processes: channel, messages, settings, errors, folders.

Standard library only, Python 3.7.
"""
