"""Run a command on the standard input; print its peak memory in bytes and its CPU seconds.

Run as a script by an interpreter that loads nothing else: a process inherits the peak memory of its
parent, so only a small parent measures it correctly.
"""

import os
import sys


def main() -> None:
    """Run and measure one command."""
    discard = os.open(os.devnull, os.O_WRONLY)
    started = os.posix_spawn(
        sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, discard, 1)]
    )
    _, status, usage = os.wait4(started, 0)
    peak = usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss << 10
    sys.stdout.write(f"{peak} {usage.ru_utime + usage.ru_stime}")
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
