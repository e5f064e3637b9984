"""Runs the watcher, or a hook, when this file is run by its path, as the generated commands do."""

import os
import sys

# The folder of this file is no place for imports; the package's own comes last, in case it is not installed.
sys.path[0:1] = []
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120

words = sys.argv[1:]
if words[:1] == ["hook"]:
    from simplexmcp.rooms.hook import run

    del words[0]
else:
    from simplexmcp.rooms.watch import run

sys.exit(run(words))
