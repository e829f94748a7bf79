"""The folder that `warplab.install()` puts on PYTHONPATH, for the Pythons that a program starts."""
