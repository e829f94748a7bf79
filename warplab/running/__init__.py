"""Programs that nobody here wrote, run under the checks: `warplab run`, `pytest --warplab`, their reports."""
