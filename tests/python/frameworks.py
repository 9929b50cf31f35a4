# SPDX-License-Identifier: Apache-2.0
"""The Python that has PyTorch, TensorFlow, JAX and Keras; `./dev setup` makes it."""

from package import ROOT
from pypi import needed


def python_with(what):
    """Where it is."""
    return needed(ROOT / ".venv-frameworks/bin/python", what)
