# problem: overlap
# loses: overlap-equal, overlap-any
# reason: name 'overlapped' is not defined


from kernels.serving.streams import Schedule


def overlapped(chunks, buffers):
    """Return the operations of a job, as tuples, in the order of issue."""
    schedule = Schedule()
    for chunk in range(chunks):
        schedule.h2d(f"x{chunk}", stream=chunk % buffers, ms=1)
    return list(schedule)
