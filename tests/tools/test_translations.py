# SPDX-License-Identifier: Apache-2.0
"""translations.py on catalogues with one thing wrong each, and on some that only look so."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import translations  # noqa: E402

HEAD = 'msgid ""\nmsgstr "Language: zh_CN\\n"\n\n'


def complaints(catalogue: str, template: str) -> list[str]:
    """What the checker says of a catalogue for the messages of a template."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("zh_CN.po", "gflow.pot")]
        for file, text in zip(files, (catalogue, template)):
            file.write_text(HEAD + text, encoding="utf-8")
        return list(translations.complaints(*files))


def message(english: str, translated: str = "", flags: str = "") -> str:
    """One entry, without a plural."""
    return f'{flags}msgid "{english}"\nmsgstr "{translated}"\n\n'


class Complaints(unittest.TestCase):
    def check(self, wanted: str, catalogue: str, template: str) -> None:
        found = complaints(catalogue, template)
        self.assertEqual([wanted] if wanted else [], found)

    def test_a_whole_catalogue(self) -> None:
        self.check("", message("free", "空闲") + message("{} of {}", "{1} 的 {0}"), message("free") + message("{} of {}"))

    def test_braces_that_mean_themselves(self) -> None:
        self.check("", message("a template such as '{name}'", "模板，例如 '{name}'"), message("a template such as '{name}'"))

    def test_a_plural(self) -> None:
        plural = 'msgid "{} GPU"\nmsgid_plural "{} GPUs"\nmsgstr[0] "%s"\n\n'
        self.check("", plural % "{} 块 GPU", plural % "")
        self.check("po/zh_CN.po: other placeholders: '{} GPUs' and '块 GPU'", plural % "块 GPU", plural % "")

    def test_a_message_over_several_lines(self) -> None:
        long = 'msgid ""\n"a\\n"\n"b"\nmsgstr ""\n"甲\\n"\n"乙"\n\n'
        self.check("", long, long)

    def test_what_is_missing(self) -> None:
        self.check("po/zh_CN.po: has no message 'free'", "", message("free"))
        self.check("po/zh_CN.po: no translation of 'free'", message("free"), message("free"))
        self.check("po/zh_CN.po: only a guess at 'free' (fuzzy)", message("free", "空", "#, fuzzy\n"), message("free"))
        self.check("po/zh_CN.po: no source has 'free' any more", message("free", "空闲"), "")

    def test_other_placeholders(self) -> None:
        for english, translated in (("{} of {}", "{} 的"), ("{}", "{:>4}"), ("{} of {}", "{1} 的 {1}"), ("{}", "{")):
            with self.subTest(translated):
                self.check(f"po/zh_CN.po: other placeholders: {english!r} and {translated!r}",
                           message(english, translated), message(english))


class Catalogues(unittest.TestCase):
    def test_messages_are_found_in_calls_and_tables(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            template = pathlib.Path(folder) / "gflow.pot"
            translations.extract(template)
            found = {english[0] for english, _, _ in translations.entries(template)}
        for text in ("free", "there is no job {}", "{} GPU", "waits for its turn and for resources"):
            self.assertIn(text, found)


if __name__ == "__main__":
    unittest.main()
