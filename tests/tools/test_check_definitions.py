# SPDX-License-Identifier: Apache-2.0
"""check_definitions.py on files that define one name twice, and on some that only look so."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_definitions  # noqa: E402


def complaints(*files: str) -> list[str]:
    """What the checker prints for files in namespace gflow::api."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "src"
        source.mkdir()
        for number, text in enumerate(files):
            (source / f"{number}.cpp").write_text(f"namespace gflow::api {{\n{text}\n}}  // namespace gflow::api\n")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_definitions.main(["check_definitions.py", folder])
        return out.getvalue().splitlines() if code else []


FIELDS = """template <typename Io>
void fields(Io& io, DeviceProcess& process) {
  io.field("pid", process.pid);
}"""
ANONYMOUS = "namespace {\n%s\n}  // namespace"


class CheckDefinitions(unittest.TestCase):
    def test_one_template_in_two_files(self):
        other = FIELDS.replace("process", "it").replace("pid", "name")
        self.assertEqual(complaints(FIELDS, other), [
            "src/1.cpp:3: gflow::api::template <typename Io> fields(Io&,DeviceProcess&) is defined in src/0.cpp:3, too"])

    def test_one_inline_function_and_one_type_in_two_files(self):
        text = "inline int twice(int value, std::map<int, int> seen = {}) {\n  return 2 * value;\n}\nstruct Row final {\n};"
        self.assertEqual(complaints(text, text.replace("value", "number")), [
            "src/1.cpp:5: gflow::api::Row is defined in src/0.cpp:5, too",
            "src/1.cpp:2: gflow::api::twice(int,std::map<int, int>) is defined in src/0.cpp:2, too"])

    def test_what_one_file_has_for_itself_is_its_own(self):
        self.assertEqual(complaints(FIELDS, ANONYMOUS % FIELDS, ANONYMOUS % FIELDS), [])
        self.assertEqual(complaints("static int twice(int a) {\n}", "int twice(int b) {\n}"), [])

    def test_overloads_specializations_and_members_are_told_apart(self):
        self.assertEqual(complaints(FIELDS, FIELDS.replace("DeviceProcess", "Device")), [])
        self.assertEqual(complaints("int Job::id(int a) {\n}", "int Node::id(int a) {\n}"), [])
        self.assertEqual(complaints("template <>\nstruct Is<A> {\n};", "template <>\nstruct Is<B> {\n};"), [])
        self.assertEqual(complaints("struct Job;\nint twice(int a);", "struct Job {\n};\nint twice(int a) {\n}"), [])
        self.assertEqual(complaints("struct Job {\n  int id() const {\n  }\n};", "struct Node {\n  int id() const {\n  }\n};"), [])

    def test_the_sources(self):
        self.assertEqual(check_definitions.main(["check_definitions.py", str(ROOT)]), 0)


if __name__ == "__main__":
    unittest.main()
