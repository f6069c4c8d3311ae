"""The peak memory of a separate process."""

PEAK = """
def peak_memory():
    # Not `ru_maxrss`, in which a child begins with what its parent holds.
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
"""
"""A part of a program: a function that returns it in bytes."""
