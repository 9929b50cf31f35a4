# SPDX-License-Identifier: Apache-2.0
"""Workers of Dask that are jobs: each gets a GPU of its own from the queue. Needs pip install 'gflow[dask]'."""

import os

from gflow.dask import GflowCluster


def trained(rate: float) -> tuple[float, str]:
    return rate, os.environ["CUDA_VISIBLE_DEVICES"]


if __name__ == "__main__":
    with GflowCluster(gpus=1, cpus=1, time_limit=600) as cluster, cluster.get_client() as client:
        cluster.scale(2)
        client.wait_for_workers(2)
        for rate, gpu in client.gather(client.map(trained, [0.1, 0.01, 0.001])):
            print(f"{rate} was on GPU {gpu}")
