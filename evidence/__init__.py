"""What the course's claims are held to: hardware counters, recorded times, published programs, other people's tests.

It imports the course; nothing of the course imports it, and `make test` runs without it. README.md says what is here.
"""
