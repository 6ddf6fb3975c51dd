"""The end of a `tfprof-run --repeat`: how its runs compare.

python -m tfprof.cli.series_report NAME --store DIR
"""

import argparse
import os
import sys
from collections.abc import Sequence

from ..collector.errors import TfprofError
from ..collector.render import colors
from ..collector.store.opening import open_reader
from ..commands.streams import print_lines
from .colored import has_colors
from .command import width
from .diff import compared, text_lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the series: repeat:ID")
    parser.add_argument("--store", required=True, help="the folder with the results")
    options = parser.parse_args(arguments)
    colors.use(has_colors())
    try:
        result = compared(open_reader(options.store), [options.name])
        print_lines(["", *text_lines(result, "run", width()), f"tfprof: more with  tfprof diff {options.name}"])
    except TfprofError as error:
        print_lines([f"tfprof: no comparison: {error}"])
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the interpreter's last flush succeeds
    return 0


if __name__ == "__main__":
    sys.exit(main())
