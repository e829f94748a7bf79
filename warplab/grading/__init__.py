"""Grading: a student's code runs in a sandbox and hands out data; a process that the student cannot reach judges it.

`sandbox` starts the sandboxed processes, `kernel_manager` gives nbclient a kernel in one.
"""

import sys

# jsonschema, of nbformat, imports this where it is installed, for checks of addresses that no notebook needs; building
# its grammar takes longer than all other imports together (2 s in each process). None: as if it were not installed.
sys.modules.setdefault("rfc3987_syntax", None)
