"""Runs in the environment of XProf: prints what its tools make of the XSpaces of one run, as JSON.

Arguments: the files, then --, then the names of tools.
"""

import json
import sys
from typing import Any

from xprof.convert import raw_to_tool_data


def _tool(paths: list[str], tool: str) -> Any:
    data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {"use_saved_result": False})
    return json.loads(data)


split = sys.argv.index("--")
paths, tools = sys.argv[1:split], sys.argv[split + 1 :]
print(json.dumps({tool: _tool(paths, tool) for tool in tools}))
