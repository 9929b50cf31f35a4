# SPDX-License-Identifier: Apache-2.0
"""What users of the town do that no command does: python3 syscalls.py WHAT ARGUMENT..."""

import ctypes
import os
import resource
import select
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

LIBC = ctypes.CDLL(None, use_errno=True)
KEYCTL = {"x86_64": 250}.get(os.uname().machine, 219)
ADD_KEY = {"x86_64": 248}.get(os.uname().machine, 217)
SESSION = -3
JOIN, READ, SEARCH = 1, 11, 10


def call(number, *arguments):
    got = LIBC.syscall(ctypes.c_long(number), *arguments)
    return got if got >= 0 else -ctypes.get_errno()


def with_session(*command):
    """Runs a command in a new session keyring that holds a secret."""
    call(KEYCTL, JOIN, None)
    with_key(*command)


def with_key(*command):
    """Runs a command with a secret in the session keyring it has, and says the key's number."""
    secret = b"secret of root"
    key = call(ADD_KEY, b"user", b"gflow-test", secret, ctypes.c_size_t(len(secret)), SESSION)
    print(f"key {key}", flush=True)
    os.execvp(command[0], command)


def find_key(number):
    """What a job sees of that key: by its name in its session, and by its number."""
    found = call(KEYCTL, SEARCH, SESSION, b"user", b"gflow-test", 0)
    buffer = ctypes.create_string_buffer(100)
    got = call(KEYCTL, READ, int(number), buffer, ctypes.c_size_t(100))
    own = call(ADD_KEY, b"user", b"own", b"mine", ctypes.c_size_t(4), SESSION)
    print(f"search {'found' if found > 0 else 'no'} read {'found' if got > 0 else 'no'} own {'yes' if own > 0 else own}")


def talk(path):
    """Sends standard input to a socket and prints the answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(sys.stdin.buffer.read())
        while chunk := connection.recv(65536):
            sys.stdout.buffer.write(chunk)


def listen(path):
    """A false daemon: says when it listens, then how many bytes a client sent before it went."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        server.listen()
        print("listening", flush=True)
        connection, _ = server.accept()
        got = 0
        while chunk := connection.recv(65536):
            got += len(chunk)
        print(f"got {got} bytes", flush=True)


def hold_connections(path, count):
    """Opens as many connections as it is let, says how many, and keeps them until its input ends."""
    held = []
    for _ in range(int(count)):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            connection.sendall(b"GET /api/v1/jobs HTTP/1.1\r\n")
        except OSError:
            break
        held.append(connection)
    print(len(held), flush=True)
    sys.stdin.read()


def abandon_polls(path, revision, count):
    """Asks to be told of a change and goes, so often; says how often."""
    poll = f"GET /api/v1/changes?revision={revision} HTTP/1.1\r\nHost: gflow\r\n\r\n".encode()
    for _ in range(int(count)):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            try:
                connection.sendall(poll)
            except (BrokenPipeError, ConnectionResetError):
                pass  # one too many at that moment, which costs the daemon as much
    print(count, flush=True)


def large_bodies(path, count, size):
    """Sends so many requests of that size at once; says what each was answered."""
    head = (f"POST /api/v1/jobs/check HTTP/1.1\r\nHost: gflow\r\nContent-Type: application/json\r\n"
            f"Content-Length: {size}\r\nConnection: close\r\n\r\n").encode()
    body, together = b" " * int(size), threading.Barrier(int(count))

    def send():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            together.wait()
            try:
                connection.sendall(head + body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused ahead of its body: the answer is there
            return connection.recv(12)

    with ThreadPoolExecutor(int(count)) as senders:
        answers = [future.result() for future in [senders.submit(send) for _ in range(int(count))]]
    print(*(answer.split()[1].decode() for answer in answers), flush=True)


def processes(most):
    """As many as its limit allows, each in a session of its own, then a signal to all of them."""
    resource.setrlimit(resource.RLIMIT_NPROC, (int(most), int(most)))
    for _ in range(2 * int(most)):
        try:
            if os.fork() == 0:
                os.setsid()
                os.execlp("sleep", "sleep", "infinity")
        except OSError:
            break
    os.kill(-1, signal.SIGTERM)
    os.kill(-1, signal.SIGKILL)


def flip(name, elsewhere):
    """Makes one thing after the other of a name, until its input ends."""
    os.mkdir("own")
    with open("own/run", "w") as program:
        program.write("#!/bin/sh\nid; cat key\n")
    os.chmod("own/run", 0o755)
    os.symlink(f"{elsewhere}/key", "own/key")
    os.symlink("own", "link-own")
    os.symlink(elsewhere, "link-elsewhere")
    os.symlink(name, "link-loop")
    print("flipping", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for kind in ("own", "elsewhere", "own", "loop"):
            os.symlink(os.readlink(f"link-{kind}"), "next")
            os.rename("next", name)
        os.unlink(name)
        os.mkfifo(name)
        os.unlink(name)


def fill():
    """Writes to its log for ever, whatever is said of the disk; tells in ~/full when it is."""
    chunk, told = b"x" * 65536, False
    while True:
        try:
            os.write(1, chunk)
        except OSError:
            if not told:
                with open(os.path.expanduser("~/full"), "w") as full:
                    full.write("full\n")
            told = True


if __name__ == "__main__":
    {"with_session": with_session, "with_key": with_key, "find_key": find_key, "talk": talk, "listen": listen,
     "hold_connections": hold_connections, "abandon_polls": abandon_polls,
     "large_bodies": large_bodies, "processes": processes, "fill": fill, "flip": flip}[sys.argv[1]](*sys.argv[2:])
