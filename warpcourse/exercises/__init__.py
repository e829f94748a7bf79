"""The tooling of exercises: release, score, the `check` command."""
