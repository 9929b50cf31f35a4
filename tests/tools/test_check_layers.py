# SPDX-License-Identifier: Apache-2.0
"""check_layers.py on a small tree that breaks each rule in turn."""
import contextlib
import importlib.util
import io
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools/check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)

LAYERS = """\
gflow_module(base PURE LIBS fmt::fmt)
gflow_module(core PURE DEPS base)
gflow_module(os   DEPS base)
gflow_module(daemon DEPS base core os
             LIBS spdlog::spdlog)
"""
# Nothing that is declared is left unused.
USED = {
    "src/core/used.h": '#include "base/a.h"\n',
    "src/os/used.h": '#include "base/a.h"\n',
    "src/daemon/used.h": '#include "base/a.h"\n#include "core/b.h"\n#include "os/c.h"\n',
}


def complaints(files: dict[str, str], layers: str = LAYERS) -> list[str]:
    """What the checker prints for a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {"src/CMakeLists.txt": layers, **USED, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_layers.main(["check_layers.py", folder])
        lines = out.getvalue().splitlines()
        return lines if code else []


class CheckLayers(unittest.TestCase):
    def test_a_tree_in_order_has_no_complaint(self):
        self.assertEqual(complaints({
            "src/base/a.h": '#pragma once\n#include <string>\n',
            "src/core/b.cpp": '#include "core/b.h"\n#include "base/a.h"\n#include <fmt/format.h>\n'
                              '// getenv( and std::thread are only spoken of\n'
                              'auto s = "time(nullptr)"; auto t = step(now); auto run_time = time(3);\n',
            "src/core/b.h": '#include <chrono>\n#include "base/a.h"\n',
            "src/os/c.cpp": '#include <thread>\nauto h = getenv("HOME");\n',
            "src/daemon/d.cpp": '#include "core/b.h"\n#include "os/c.h"\n#include <spdlog/spdlog.h>\n',
        }), [])

    def test_an_include_that_is_not_declared(self):
        self.assertEqual(complaints({"src/core/b.cpp": '\n#include "os/c.h"\n'}),
                         ["src/core/b.cpp:2: core may not include os: it is not in its DEPS"])
        self.assertEqual(complaints({"src/base/a.h": '#  include "core/b.h"\n'}),
                         ["src/base/a.h:1: base may not include core: it is not in its DEPS"])

    def test_a_cycle(self):
        layers = LAYERS.replace("base PURE", "base PURE DEPS os")
        self.assertEqual(complaints({}, layers), [
            "src/CMakeLists.txt:1: base depends on itself through others (cycle)",
            "src/CMakeLists.txt:1: os depends on itself through others (cycle)"])

    def test_a_dependency_that_does_not_exist(self):
        self.assertEqual(complaints({}, "gflow_module(base DEPS bass)\n"),
                         ["src/CMakeLists.txt:1: base depends on bass, which is not a module"])

    def test_a_dependency_that_is_not_used(self):
        self.assertEqual(complaints({"src/daemon/used.h": '#include "base/a.h"\n#include "os/c.h"\n'}), [
            "src/CMakeLists.txt:1: daemon includes nothing of core: it is needless in its DEPS"])

    def test_a_picture_that_is_not_what_is_declared(self):
        picture = ("# Architecture\n\n"
                   "    PURE     base   texts\n"
                   "             core   what a job is           <- base\n"
                   "    ----------------------------------\n"
                   "    OUTSIDE  os     calls                   <- base\n"
                   "             daemon gflowd and its commands <- base core os\n\n"
                   "## More\n\n    core   not drawn here\n")
        self.assertEqual(complaints({"ARCHITECTURE.md": picture}), [])
        self.assertEqual(complaints({"ARCHITECTURE.md": picture.replace("<- base core os", "<- base os")}),
                         ["ARCHITECTURE.md:7: daemon is declared otherwise"])
        self.assertEqual(complaints({"ARCHITECTURE.md": picture.replace("OUTSIDE ", "        ")}), [
            "ARCHITECTURE.md:6: os is declared otherwise",
            "ARCHITECTURE.md:7: daemon is declared otherwise"])
        self.assertEqual(complaints({"ARCHITECTURE.md": re.sub(r".* core .*job.*\n", "", picture)}),
                         ["ARCHITECTURE.md:1: core is not drawn"])

    def test_ambient_input_in_a_pure_module(self):
        for code in ("#include <thread>", "#include <filesystem>", "#include <fstream>",
                     "#include <iostream>", "#include <random>", "#include <unistd.h>",
                     "#include <sys/stat.h>", "#include <sqlite3.h>",
                     "auto t = std::chrono::system_clock::now();", 'auto h = std::getenv("HOME");',
                     "auto t = time(nullptr);", "auto t = ::time(&t);", 'auto f = fopen("a", "r");',
                     "int r = std::rand();", "nvmlInit_v2();", "sqlite3_open(p, &db);",
                     "std::mt19937 random;", "std::mutex lock;", "usleep(3);"):
            found = complaints({"src/core/b.cpp": f"\n{code}\n"})
            self.assertEqual(len(found), 1, (code, found))
            self.assertTrue(found[0].startswith(
                "src/core/b.cpp:2: ambient input in the pure module core: "), found)
            self.assertEqual(complaints({"src/os/b.cpp": f"\n{code}\n"}), [], code)
            self.assertEqual(complaints({"src/core/b_test.cpp": f"\n{code}\n"}), [], code)

    def test_a_third_party_header_in_an_open_header(self):
        self.assertEqual(complaints({"src/core/b.h": "#include <fmt/format.h>\n"}),
                         ["src/core/b.h:1: third-party header <fmt/format.h> in a header of core"])
        self.assertEqual(complaints({"src/os/c.h": "#include <fmt/format.h>\n"}), [])

    def test_a_file_that_is_too_long(self):
        self.assertEqual(complaints({"src/core/b.cpp": "\n" * 601}),
                         ["src/core/b.cpp:601: 601 lines, at most 600: split it by idea"])
        self.assertEqual(complaints({"src/core/b.cpp": "\n" * 600}), [])
        self.assertEqual(complaints({"src/core/b_test.cpp": "\n" * 800}), [])
        self.assertEqual(complaints({"tests/e2e/test_a.py": "\n" * 801}),
                         ["tests/e2e/test_a.py:801: 801 lines, at most 800: split it by idea"])

    def test_this_repository_is_read_as_declared(self):
        modules = check_layers.read_modules(ROOT)
        self.assertEqual(modules["core"], ({"base"}, True))
        self.assertFalse(modules["os"][1])
        self.assertIn("store", modules["daemon"][0])


if __name__ == "__main__":
    unittest.main()
