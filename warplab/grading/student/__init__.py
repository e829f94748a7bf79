"""What runs inside the sandbox, beside the student's code."""
