# SPDX-License-Identifier: MIT
"""Asks NVIDIA's driver for the time slice and the context switch counts of another process's channel groups.

Independent of gpreempt: handles come from libtap.so in that process, the question goes over a duplicate of its own file (pidfd_getfd).
Two controls that only read: 0xa06c0104 (GET_TIMESLICE) and 0x20801215 (GR_GET_CTXSW_STATS) of open-gpu-kernel-modules 580.
"""
from __future__ import annotations

import ctypes
import fcntl
import os
from typing import Any

PIDFD_GETFD = 438
RM_CONTROL = 0xC020462A
GET_TIMESLICE, GET_CTXSW_STATS = 0xA06C0104, 0x20801215


class Control(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("client", "object", "command", "flags")] + [
        ("params", ctypes.c_uint64),
        ("size", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
    ]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("group", "flags", "save", "restore", "wfi", "cta", "cilp", "gfxp")]


def noted(path: str) -> list[tuple]:
    """[(kind, fd, client, object, parent)] from a tap's file."""
    try:
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return []
    return [
        (line[0], *map(int, line[1:])) for line in lines if len(line) == 5 and all(word.isdigit() for word in line[1:])
    ]


def compute_groups(objects: list[tuple]) -> list[tuple]:
    """[(fd, client, group)] of the groups below one of whose channels there is a compute object."""
    channels = {(client, parent) for kind, _, client, _, parent in objects if kind == "compute"}
    groups = {
        (client, parent)
        for kind, _, client, handle, parent in objects
        if kind == "channel" and (client, handle) in channels
    }
    return [
        (fd, client, handle)
        for kind, fd, client, handle, _ in objects
        if kind == "group" and (client, handle) in groups
    ]


def control(pid: int, fd: int, client: int, handle: int, command: int, params: Any) -> int | str | None:
    """0, or why not."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        copy = libc.syscall(PIDFD_GETFD, pidfd, fd, 0)
        if copy < 0:
            return "pidfd_getfd: " + os.strerror(ctypes.get_errno())
    finally:
        os.close(pidfd)
    try:
        ask = Control(client, handle, command, 0, ctypes.addressof(params), ctypes.sizeof(params), 0xFFFFFFFF)
        fcntl.ioctl(copy, RM_CONTROL, ask)
        return 0 if ask.status == 0 else "status 0x%x" % ask.status
    except OSError as error:
        return error.strerror
    finally:
        os.close(copy)


def slices(pid: int, path: str) -> list[int]:
    """Time slices (µs) of the compute groups of a process; [] where nothing is known."""
    found = []
    for fd, client, handle in compute_groups(noted(path)):
        value = ctypes.c_uint64(0)
        try:
            if control(pid, fd, client, handle, GET_TIMESLICE, value) == 0:
                found.append(value.value)
        except OSError:
            return []
    return found


def saves(pid: int, path: str) -> int | None:
    """How often the compute groups of a process were saved so far; None where it is not told."""
    objects = noted(path)
    subdevices = {client: handle for kind, _, client, handle, _ in objects if kind == "subdevice"}
    total = None
    for fd, client, handle in compute_groups(objects):
        if client not in subdevices:
            continue
        stats = Stats(group=handle)
        try:
            if control(pid, fd, client, subdevices[client], GET_CTXSW_STATS, stats) == 0:
                total = (total or 0) + stats.save
        except OSError:
            return None
    return total
