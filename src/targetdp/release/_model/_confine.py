"""What a process gives up before it looks at a model that somebody else wrote.

Three means, each enough against a model that does only what its file says, one behind the other:

- limits of the system (`setrlimit`): no descriptor can be opened any more, so neither a file nor a socket; no
  file can grow; memory is bounded; a crash leaves no image of the memory behind. Linux and macOS.
- `PR_SET_DUMPABLE` and `PR_SET_NO_NEW_PRIVS`: no other process of the same user may look into this one, and
  nothing that it could start would have more rights. Linux.
- a filter of system calls (seccomp): the kernel answers the few calls that computing needs, and refuses all
  others. Linux on x86_64 and aarch64.

Everything stands in one module, which needs nothing but Python's own library: it is read by those who want
to know what keeps a model in.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from contextlib import suppress

MEMORY = 2 << 30
"""Bytes of addresses that a process may have."""

# From linux/prctl.h, linux/seccomp.h, linux/audit.h and linux/sched.h.
_SET_DUMPABLE, _SET_NO_NEW_PRIVS = 4, 38
_SET_FILTER, _ALL_THREADS = 1, 1
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_FORK_ONLY = 0x7E020000 | 0x00000100 | 0x00010000 | 0x80
"""Flags of clone that a plain fork does not have: new namespaces, shared memory, threads, new time."""
_EXECUTABLE = 0x4
# From linux/bpf_common.h: load a word of the call's record, compare, test bits, return.
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CLONE, _CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
_MEMORY_CALLS = {"mmap": (9, 222), "mprotect": (10, 226)}
"""Allowed unless memory is to become executable: nobody brings code of his own."""
_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "setitimer": (38, 103),
    "gettimeofday": (96, 169),
    "clock_gettime": (228, 113),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
_FORKING = {"wait4": (61, 260), "seccomp": (317, 277), "set_robust_list": (273, 99), "rseq": (334, 293)}
"""What a process needs besides to fork another one, to wait for it, and for that one to give up more."""


def begin() -> None:
    """Give up what is never needed: to be called before a library is loaded."""
    os.closerange(3, 1 << 16)
    # Too much work on a row ends in this signal: whoever started us may have turned it off.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    # Where all addresses count from the start (macOS), the limit cannot be set: the kernel says so.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if sys.platform == "linux":
        _prctl(_SET_DUMPABLE, 0)


def confine() -> str:
    """Give up everything but computing, memory, open pipes, and copies of this process that are as confined.

    Returns:
        By which means, in words for the data holder.

    Raises:
        OSError: The kernel refuses what it should have: then nothing is run.
    """
    # Pipes that are open stay open; nothing new can be opened, on Linux and macOS.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    machine = _machine()
    if machine is None:
        return "limits of the system (no file or connection can be opened); no filter of system calls here"
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _set_filter(machine, _filter(machine, may_fork=True))
    return "limits of the system and a filter of system calls (no file, connection or program can be opened)"


def forbid_copies() -> None:
    """After `confine`: give up making copies of this process, too."""
    machine = _machine()
    if machine is None:
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    else:
        _set_filter(machine, _filter(machine, may_fork=False))


def _machine() -> str | None:
    """Which kind of processor, if there is a filter of system calls for it here."""
    machine = platform.machine()
    return machine if sys.platform == "linux" and machine in _MACHINES else None


def _filter(machine: str, *, may_fork: bool) -> bytes:
    """The filter's program: which calls the kernel answers.

    Each part either decides or leaves the number of the call where it was, for the next.
    """
    place, audit = _MACHINES[machine]
    load = _step(_LOAD, _NUMBER_AT)
    program = _step(_LOAD, _MACHINE_AT) + _step(_EQUAL, audit, yes=1) + _step(_RETURN, _KILL) + load
    calls = {**_CALLS, **_FORKING} if may_fork else _CALLS
    for numbers in calls.values():
        program += _step(_EQUAL, numbers[place], no=1) + _step(_RETURN, _ALLOW)
    for numbers in _MEMORY_CALLS.values():
        program += _unless(numbers[place], argument=2, bits=_EXECUTABLE)
    if may_fork:
        program += _unless(_CLONE[machine], argument=0, bits=_FORK_ONLY)
        # Whoever asks in the new way is told to ask in the old one, whose flags can be looked at.
        program += _step(_EQUAL, _CLONE3, no=1) + _step(_RETURN, _REFUSE | errno.ENOSYS)
    return program + _step(_RETURN, _REFUSE | errno.EPERM)


def _unless(number: int, *, argument: int, bits: int) -> bytes:
    """Answer a call unless one of its arguments has any of these bits."""
    return (
        _step(_EQUAL, number, no=4)
        + _step(_LOAD, _ARGUMENTS_AT + 8 * argument)
        + _step(_ANY_BIT, bits, no=1)
        + _step(_RETURN, _REFUSE | errno.EPERM)
        + _step(_RETURN, _ALLOW)
    )


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many to leave out after a comparison."""
    return struct.pack("=HBBI", code, yes, no, value)


class _Program(ctypes.Structure):
    _fields_ = (("steps", ctypes.c_ushort), ("program", ctypes.c_char_p))


def _set_filter(machine: str, program: bytes) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    wanted = _Program(len(program) // 8, program)
    if library.syscall(_SECCOMP[machine], _SET_FILTER, _ALL_THREADS, ctypes.byref(wanted)) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses to filter system calls: no model is run here")


def _prctl(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) is refused: no model is run here")
