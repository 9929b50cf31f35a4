# SPDX-License-Identifier: Apache-2.0
"""Who serves a port of this machine: the kernel is asked before anything is sent there (sock_diag(7)).

Any user may listen at a port while gflowd does not, and reads what clients send then: tokens, commands, environments.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import NamedTuple, Optional

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_HEADER_BYTES = 16  # of struct nlmsghdr
_UID_AT = 64  # in struct inet_diag_msg
_ANY_STATE = 0xFFFFFFFF
_ANY_COOKIE = b"\xff" * 8
_NOBODY = 65534


class _Found(NamedTuple):
    uid: int
    inode: int  # 0: no process has it, and the uid says nothing


def server_uid(connection: socket.socket) -> Optional[int]:
    """Whose the socket at the other end is; None where that cannot be found out.

    A connection that nobody has taken yet belongs to whoever listens there, who alone can take it: its queue ends with the
    socket that listens. One that was taken between both questions is looked at again.
    """
    try:
        here, there = connection.getsockname()[:2], connection.getpeername()[:2]
        nobody = ("::" if connection.family == socket.AF_INET6 else "0.0.0.0", 0)
        taken = _socket_at(connection.family, there, here)
        if taken is None or taken.inode == 0:
            listens = _socket_at(connection.family, there, nobody)
            taken = _socket_at(connection.family, there, here)
            if taken is None or taken.inode == 0:
                taken = listens
    except (OSError, AttributeError):  # no such question may be asked here; no Linux
        return None
    if taken is None or taken.inode == 0:
        return None
    return None if taken.uid == _NOBODY and not _has_all_users() else taken.uid


def is_stranger(uid: Optional[int]) -> bool:
    """As at a socket: what is served by root or oneself is believed, and what is not known whose it is."""
    return uid is not None and uid not in (0, os.geteuid())


def _socket_at(family: int, local: tuple[str, int], remote: tuple[str, int]) -> Optional[_Found]:
    """The TCP socket of these addresses, else the one that would get such a packet: that listens there."""
    addresses = b"".join(socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (local, remote))
    asked = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    asked += struct.pack("!HH", local[1], remote[1]) + addresses + struct.pack("=I", 0) + _ANY_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.sendto(struct.pack("=IHHII", _HEADER_BYTES + len(asked), _BY_FAMILY, _REQUEST, 0, 0) + asked, (0, 0))
        answer = kernel.recv(4096)
    kind = struct.unpack_from("=IH", answer)[1]
    if kind != _BY_FAMILY or len(answer) < _HEADER_BYTES + _UID_AT + 8:
        return None
    return _Found(*struct.unpack_from("=II", answer, _HEADER_BYTES + _UID_AT))


def _has_all_users() -> bool:
    """Whether a uid here is that of the machine: in a user namespace all that it does not have are nobody."""
    try:
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    except OSError:
        return True
