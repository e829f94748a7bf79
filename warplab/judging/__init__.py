"""A judge of kernels that strangers or programs wrote: `warplab judge task.py answer`."""
