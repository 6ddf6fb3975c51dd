"""Lets functions of tests count as the shim's code."""

from tfprof.shim.own_os import OUR_FILE_PREFIXES


def ours(function):
    """Give ``function`` a file name of the shim, and return it."""
    function.__code__ = function.__code__.replace(co_filename=OUR_FILE_PREFIXES[0] + "ours.py")
    return function
