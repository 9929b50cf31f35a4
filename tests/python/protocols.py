# SPDX-License-Identifier: Apache-2.0
"""What a kubelet says to others, of the .proto files that tests/cluster/build.sh keeps beside it."""

import sys


def load(folder, name):
    """The messages of a file, and its services."""
    import grpc

    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # where they are looked for
    return grpc.protos_and_services(f"{name}.proto")
