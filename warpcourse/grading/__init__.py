"""Grading: a student's code runs in a sandbox and hands out data; a process that the student cannot reach judges it.

From the top: `course` grades a class, `judge` grades one submission, `sandbox` isolates the student's processes and
`student` is what the grader runs inside them. `exchange` is the form of the data that crosses between the two sides.
"""

import sys

# nbformat's jsonschema imports this package where it is installed, to check addresses that no notebook has. Building
# its grammar takes longer than all other imports together (2 s per process). None: as if it were not installed.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None blocks an import
