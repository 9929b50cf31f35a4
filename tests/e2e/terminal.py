# SPDX-License-Identifier: Apache-2.0
"""A terminal for programs under test: a pseudo-terminal and what a person would see on it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import unicodedata

from machine import PATIENCE

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([A-Za-z])")


def width_of(character):
    """Columns it takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """Lines of cells. Knows what gqueue -w sends, and fails at anything else."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.line, self.column = 0, 0
        self.cells = {}
        self.other = None  # the first screen while the second is shown
        self.cursor = True
        self.scrolled = 0
        self.wrapped = 0

    def put(self, character):
        width = width_of(character)
        if self.column + width > self.columns:
            self.wrapped += 1
            self.column = 0
            self.feed_line()
        self.cells[self.line, self.column] = character
        self.column += width

    def feed_line(self):
        self.line += 1
        if self.line < self.rows:
            return
        self.scrolled += 1
        self.line = self.rows - 1
        self.cells = {(line - 1, column): c for (line, column), c in self.cells.items() if line > 0}

    def clear(self, wanted):
        self.cells = {place: c for place, c in self.cells.items() if not wanted(place)}

    def control(self, parameters, letter):
        here = (self.line, self.column)
        if letter == "H" and not parameters:
            self.line, self.column = 0, 0
        elif letter == "K" and not parameters:
            self.clear(lambda place: place[0] == here[0] and place[1] >= here[1])
        elif letter == "J" and not parameters:
            self.clear(lambda place: place >= here)
        elif letter in "hl" and parameters == "?25":
            self.cursor = letter == "h"
        elif letter == "h" and parameters == "?1049":
            self.other = self.other or (self.cells, self.line, self.column)
            self.cells = {}
        elif letter == "l" and parameters == "?1049":
            assert self.other, "the second screen is left without having been shown"
            self.cells, self.line, self.column = self.other
            self.other = None
        elif letter != "m":
            raise AssertionError(f"ESC [ {parameters} {letter}")

    def text(self):
        lines = [""] * self.rows
        for (line, column), character in sorted(self.cells.items()):
            lines[line] += " " * (column - sum(map(width_of, lines[line]))) + character
        return "\n".join(line.rstrip() for line in lines).rstrip()


class Terminal:
    """A program on a terminal of that size; `machine` gives its environment."""

    def __init__(self, machine, *command, columns=80, rows=24, env=None):
        self.screen = Screen(columns, rows)
        self.raw = b""
        self.rest = b""
        self.begun = False  # the echo of the line that starts the program was seen; all behind it is the program's
        self.status = None
        pid, self.master = pty.fork()
        if pid == 0:
            os.chdir(machine.work)
            for number in (signal.SIGINT, signal.SIGQUIT):  # ignored in what a shell started in the background
                signal.signal(number, signal.SIG_DFL)
            environment = machine.environment | {"TERM": "xterm", "LC_ALL": "C.UTF-8"} | (env or {})
            while os.read(0, 1) != b"\n":  # the size is set before the program looks
                pass
            os.execvpe(command[0], [str(word) for word in command], environment)
        self.pid = pid
        self.resize(columns, rows, tell=False)
        self.before = termios.tcgetattr(self.master)
        os.write(self.master, b"\n")
        self.until(lambda: self.begun)

    def resize(self, columns, rows, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            screen = self.screen
            screen.columns, screen.rows = columns, rows
            screen.line = min(screen.line, rows - 1)
            screen.clear(lambda place: place[0] >= rows or place[1] >= columns)

    def read(self):
        """Takes what the program wrote; False once it has ended."""
        assert select.select([self.master], [], [], PATIENCE)[0], f"nothing comes:\n{self.screen.text()}"
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        self.rest += data
        if not self.begun and b"\r\n" in self.rest:
            self.begun = True
            self.raw = self.rest = self.rest.partition(b"\r\n")[2]
        if self.begun:
            self.interpret()
        return bool(data)

    def interpret(self):
        while self.rest:
            if self.rest[0] == 0x1B:
                found = SEQUENCE.match(self.rest)
                if not found:
                    assert len(self.rest) < 16, self.rest
                    return
                self.screen.control(found[1].decode(), found[2].decode())
                self.rest = self.rest[found.end():]
                continue
            length = 1
            if self.rest[0] >= 0xC0:
                length = 2 if self.rest[0] < 0xE0 else 3 if self.rest[0] < 0xF0 else 4
            if len(self.rest) < length:
                return
            character, self.rest = self.rest[:length].decode(), self.rest[length:]
            if character == "\n":
                self.screen.feed_line()
            elif character == "\r":
                self.screen.column = 0
            else:
                self.screen.put(character)

    def until(self, wanted):
        while not wanted():
            assert self.read(), f"it ended:\n{self.screen.text()}\n{self.raw!r}"

    def shows(self, wanted):
        """Waits until the screen has that text, or `wanted(text)` is true."""
        self.until(lambda: wanted in self.screen.text() if isinstance(wanted, str) else wanted(self.screen.text()))
        return self.screen.text()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ends(self):
        """The exit code, once the program has ended."""
        while self.read():
            pass
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def close(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def on_terminal(machine, *command, columns=80, rows=24, env=None):
    """What a command leaves on a terminal, and its exit code."""
    with Terminal(machine, *command, columns=columns, rows=rows, env=env) as terminal:
        code = terminal.ends()
        return terminal, code
