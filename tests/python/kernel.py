# SPDX-License-Identifier: Apache-2.0
"""Runs cells in a real kernel, run itself by a Python that has one: a cell a line on stdin, what it gave a line on stdout.

A cell is {"code": ...} and, optional, when the kernel is interrupted: "interrupt", the path of a FIFO, once somebody writes there;
"interrupt_at", a type of message, once there is one. "shown" is the path of a FIFO where something is written once it has shown something."""

import json
import sys
import threading

from jupyter_client.manager import start_new_kernel


def interrupt_when_told(manager, path):
    with open(path) as told:
        told.read()
    manager.interrupt_kernel()


def run(manager, client, cell):
    given = []

    def note(message):
        if message["msg_type"] in ("stream", "display_data", "update_display_data", "execute_result", "error"):
            given.append([message["msg_type"], message["content"]])
        if message["msg_type"] == "display_data" and "shown" in cell:
            with open(cell.pop("shown"), "w") as told:
                told.write("now")
        if message["msg_type"] == cell.get("interrupt_at"):
            manager.interrupt_kernel()

    if "interrupt" in cell:
        threading.Thread(target=interrupt_when_told, args=(manager, cell["interrupt"])).start()
    client.execute_interactive(cell["code"], output_hook=note, timeout=120)
    return given


def main():
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for line in sys.stdin:
            print(json.dumps(run(manager, client, json.loads(line))), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
