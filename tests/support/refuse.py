"""Runs a command to which the kernel refuses a system call, as old kernels and guarded containers do.

python refuse.py SYSTEM_CALL ERROR COMMAND [ARGUMENT...]      e.g. pidfd_open ENOSYS horovodrun -np 1 true
"""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"pidfd_open": 434, "memfd_create": 319, "eventfd2": 290},
    "aarch64": {"pidfd_open": 434, "memfd_create": 279, "eventfd2": 19},
}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL_WITH = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def refuse(system_call, error):
    """From now on, in this process and all that it starts."""
    rules = [
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, NUMBERS[platform.machine()][system_call]),
        (RETURN, 0, 0, FAIL_WITH | getattr(errno, error)),
        (RETURN, 0, 0, ALLOW),
    ]
    program = Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    if (
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)) != 0
    ):
        raise OSError(ctypes.get_errno(), "no seccomp here")


if __name__ == "__main__":
    refuse(sys.argv[1], sys.argv[2])
    os.execvp(sys.argv[3], sys.argv[3:])
