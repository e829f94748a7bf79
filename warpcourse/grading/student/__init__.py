"""The grader's part inside the sandbox, beside the student's code."""
