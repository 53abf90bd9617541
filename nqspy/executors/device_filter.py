"""Denies devices to a cgroup2 by a program in the kernel (BPF). Standard library only."""

import ctypes
import os
import struct

_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_LOAD, _ATTACH, _DETACH = 5, 8, 9
_DEVICE_PROGRAM, _DEVICE_HOOK, _WITH_OTHERS = 15, 6, 2
_CHARACTER = 2
_SIZE = 128
"""Bytes of the call's attributes; those that a kernel does not know must be 0."""

# The context is access and kind, major, minor. r0: the answer, r1: the context, r2 to r4: what was read.
_READ, _MASK, _DIFFERS, _SET, _EXIT = 0x61, 0x54, 0x55, 0xB7, 0x95

_libc = ctypes.CDLL(None, use_errno=True)


def deny(folder: str, devices: list[str], *, keep: bool = True) -> bool:
    """Deny character devices (``MAJOR:MINOR``) to the processes of a cgroup for good; return True if that
    works. Filters of the cgroups above it apply too. Without ``keep`` this is only tried, and undone."""
    opened: list[int] = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        program = _program(devices)
        code, licence = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"GPL")
        attributes = struct.pack(
            "<IIQQ", _DEVICE_PROGRAM, len(program) // 8, ctypes.addressof(code), ctypes.addressof(licence)
        )
        opened.append(_call(_LOAD, attributes.ljust(68, b"\0") + struct.pack("<I", _DEVICE_HOOK)))
        _call(_ATTACH, struct.pack("<IIII", *opened, _DEVICE_HOOK, _WITH_OTHERS))
        if not keep:
            _call(_DETACH, struct.pack("<IIII", *opened, _DEVICE_HOOK, 0))
    except (OSError, ValueError):
        return False
    finally:
        for fd in opened:
            os.close(fd)
    return True


def _program(devices: list[str]) -> bytes:
    """Return the program: compare each device in turn by kind, major and minor; deny if all are equal."""
    code = _step(_READ, 2, 1, 0) + _step(_MASK, 2, value=0xFFFF)
    code += _step(_READ, 3, 1, 4) + _step(_READ, 4, 1, 8)
    for device in devices:
        major, _, minor = device.partition(":")
        code += _step(_DIFFERS, 2, skip=4, value=_CHARACTER)
        code += _step(_DIFFERS, 3, skip=3, value=int(major)) + _step(_DIFFERS, 4, skip=2, value=int(minor))
        code += _step(_SET, 0, value=0) + _step(_EXIT)
    return code + _step(_SET, 0, value=1) + _step(_EXIT)


def _step(code: int, to: int = 0, base: int = 0, skip: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, to | base << 4, skip, value)


def _call(what: int, attributes: bytes) -> int:
    """Call bpf(2); return its result. Raises OSError."""
    number = _CALLS.get(os.uname().machine)
    if number is None:
        raise OSError("the number of the call is not known here")
    attributes = attributes.ljust(_SIZE, b"\0")
    given = ctypes.create_string_buffer(attributes, _SIZE)
    answer = int(_libc.syscall(number, what, given, _SIZE))
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
