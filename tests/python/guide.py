# SPDX-License-Identifier: Apache-2.0
"""The snippets of the guide of the GPU resource manager, by the heading each stands under, and how they are run."""

import ast
import asyncio
import contextlib
import inspect
import io
import logging
import re
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "fixtures/documents/gpu_resource_manager.md"
PATHS = Path(__file__).parents[2] / "python/guide/src"

PLAIN = [
    "基本使用", "单GPU训练配置", "多GPU分布式训练配置", "混合精度训练配置", "显存监控", "资源不足处理", "显存不足处理",
    "1. 启用详细日志", "2. 检查GPU状态", "3. 性能分析", "批量大小优化", "混合精度训练", "数据并行", "模型并行",
]
# Which test runs it, in tests/frameworks.
OF_FRAMEWORKS = {
    "与训练引擎集成": "test_pytorch.py", "3. PyTorch集成": "test_pytorch.py", "梯度累积": "test_pytorch.py",
    "2. TensorFlow集成": "test_tensorflow.py",
}


def snippets():
    found, title = {}, ""
    for heading, block in re.findall(r"^#{2,4} ([^\n]+)$|^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL):
        title = heading or title
        if block:
            found[title] = block
    return found


class _Keeper(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append([record.name, record.levelname, record.getMessage()])


def run_session(blocks, names):
    """Runs blocks of [title, text] with these names, as the cells of a notebook; what each printed and what was logged, by title."""
    keeper, root = _Keeper(), logging.getLogger()
    level = root.level
    root.addHandler(keeper)
    root.setLevel(logging.INFO)

    async def run():
        told = {}
        for title, text in blocks:
            keeper.records = []
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                made = eval(compile(text, title, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
                if inspect.isawaitable(made):
                    await made
            told[title] = out.getvalue(), keeper.records
        return told

    try:
        return asyncio.run(run())
    finally:
        root.removeHandler(keeper)
        root.setLevel(level)
