"""Which names of CuPy public programs use, and which of them the stand-in has."""
