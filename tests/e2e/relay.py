# SPDX-License-Identifier: Apache-2.0
"""What a command asks the daemon for, seen in between."""

import re
import socket
import threading


class Relay:
    """Between a command and the daemon: hands everything on, and keeps what was asked for.

    `before(target)` is called before a request is handed on.
    """

    def __init__(self, machine, before=lambda _target: None):
        self.before = before
        self.daemon = str(machine.socket)
        self.path = str(machine.root / "relay")
        self.asked = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            client = self.listener.accept()[0]
            daemon = socket.socket(socket.AF_UNIX)
            daemon.connect(self.daemon)
            for source, target in ((client, daemon), (daemon, client)):
                threading.Thread(target=self.hand_on, args=(source, target, source is client), daemon=True).start()

    def hand_on(self, source, target, is_client):
        try:
            self.hand_on_all(source, target, is_client)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # a command that has ended reads no more; of the two that hand on, the other may have closed it
            source.close()

    def hand_on_all(self, source, target, is_client):
        while data := source.recv(1 << 20):
            if is_client:
                asked = re.findall(r"^(?:GET|POST) (\S+) HTTP", data.decode(errors="replace"), re.MULTILINE)
                self.asked += asked
                for request in asked:
                    self.before(request)
            target.sendall(data)
