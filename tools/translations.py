#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages and their translations: po/LANGUAGE.po against the sources.

Usage: translations.py check    fail on a message that a catalogue lacks, has no translation of or has only a
                                fuzzy one of, on a translation with other placeholders than its message, and on
                                a word that the catalogue says is not used, in it or in a document of its language
       translations.py update   bring the messages of the sources into the catalogues, as msgmerge does

A message is what tr(), tr_format(), tr_count() and tr_later() are given, and the texts of the tables of constants
named below, which are shown through tr().
"""
import pathlib
import re
import string
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What each state means; what is not enforced; what the fields of a job are, and what people call them.
JOB_FIELD = r'field<&(?:JobSpec|Request|Dependencies)::\w+>\(\s*\{\.name = "([^"]*)",\s*\.help = "([^"]*)"'
TABLES = {"src/core/status.h": r'"([a-z][^"\\\n]*)"\}',
          "src/core/executor.h": r'k(?:Gpu\w+|NotIsolated) =\s*"([^"\\\n]*)";',
          "src/core/job_description.h": JOB_FIELD}
KEYWORDS = ["tr", "tr_later", "tr_format", "tr_count:2,3"]
XGETTEXT = ["xgettext", "--language=C++", "--from-code=UTF-8", "--keyword=", "--sort-by-file", "--add-location=file",
            "--no-wrap", "--package-name=gflow", *(f"--keyword={word}" for word in KEYWORDS)]


def field_words(name: str) -> str:
    """A field as field_label() says it: without its unit."""
    return re.sub(r"_(seconds|bytes|parts|ms)$", "", name).replace("_", " ")


def table_messages(name: str) -> list[str]:
    """The messages of one of the tables."""
    found = re.findall(TABLES[name], (ROOT / name).read_text(encoding="utf-8"))
    if TABLES[name] != JOB_FIELD:
        return found
    return sorted({text for field, help_text in found for text in (field_words(field), help_text)})


def extract(template: pathlib.Path) -> None:
    """Writes all messages of the sources as a template."""
    sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.*")
                     if path.suffix in (".cpp", ".h") and not path.stem.endswith("_test"))
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            copy = pathlib.Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text("\n".join(f'tr("{text}");' for text in table_messages(name)), encoding="utf-8")
        subprocess.run([*XGETTEXT, "-o", str(template), f"--directory={folder}", f"--directory={ROOT}",
                        *sources, *TABLES], check=True)


def unquoted(line: str) -> str:
    """What stands between the first and the last quote of a line of a catalogue."""
    text = line[line.index('"') + 1:line.rindex('"')]
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def entries(catalogue: pathlib.Path) -> Iterator[tuple[list[str], list[str], bool]]:
    """Of each message: its English forms, its translations, and whether it is fuzzy."""
    for block in catalogue.read_text(encoding="utf-8").split("\n\n"):
        forms: dict[str, list[str]] = {"msgid": [], "msgstr": []}
        texts: list[str] = []
        for line in block.splitlines():
            if line.startswith(("msgid", "msgstr")):
                texts = forms[line[:5] if line.startswith("msgid") else "msgstr"]
                texts.append(unquoted(line))
            elif line.startswith('"') and texts:
                texts[-1] += unquoted(line)
        if forms["msgid"] and forms["msgid"][0]:
            yield forms["msgid"], forms["msgstr"], re.search(r"^#,.*\bfuzzy\b", block, re.M) is not None


def placeholders(text: str) -> list[str] | None:
    """What the values of a format are used for, by their places: "{1:>4} {0}" is ["0:", "1:>4"]. None for no
    format at all."""
    try:
        fields = [(name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return None
    return sorted(f"{name or place}:{spec}" for place, (name, spec) in enumerate(fields))


def is_format(text: str) -> bool:
    """Whether a text has placeholders, and not only braces that mean themselves."""
    return re.search(r"\{\d*(:[^{}]*)?\}", text) is not None


def complaints(catalogue: pathlib.Path, template: pathlib.Path) -> Iterator[str]:
    """What is wrong with a catalogue."""
    name = f"po/{catalogue.name}"
    there = {tuple(english): (translated, fuzzy) for english, translated, fuzzy in entries(catalogue)}
    wanted = {tuple(english) for english, _, _ in entries(template)}
    for english in sorted(wanted - there.keys()):
        yield f"{name}: has no message {english[0]!r}"
    for english, (translated, fuzzy) in there.items():
        if english not in wanted:
            yield f"{name}: no source has {english[0]!r} any more"
        elif fuzzy:
            yield f"{name}: only a guess at {english[0]!r} (fuzzy)"
        elif not all(translated):
            yield f"{name}: no translation of {english[0]!r}"
        elif is_format(english[-1]):
            for text in translated:
                if placeholders(text) != placeholders(english[-1]):
                    yield f"{name}: other placeholders: {english[-1]!r} and {text!r}"


def unused_words(catalogue: pathlib.Path) -> Iterator[str]:
    """Where a word stands that the glossary of a catalogue has another one for."""
    glossary = re.search(r"^# Not used: (.*)$", catalogue.read_text(), re.MULTILINE)
    words = glossary[1].split(", ") if glossary else []
    document = f"*.{catalogue.stem.replace('_', '-')}.md"
    documents = [path for folder in ("", "docs/", "packaging/**/") for path in sorted(ROOT.glob(folder + document))]
    for path in [catalogue, *documents]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word in words:
                if word in line and not line.startswith("#"):
                    yield f"{path.relative_to(ROOT)}:{number}: {word} is not used, see the glossary of po/{catalogue.name}"


def main(command: str) -> int:
    """The exit code."""
    catalogues = sorted(ROOT.glob("po/*.po"))
    with tempfile.TemporaryDirectory() as folder:
        template = pathlib.Path(folder) / "gflow.pot"
        extract(template)
        if command == "update":
            for catalogue in catalogues:
                subprocess.run(["msgmerge", "--update", "--backup=none", "--no-wrap", "--sort-by-file",
                                "--add-location=file", "--quiet",
                                "--no-fuzzy-matching", str(catalogue), str(template)], check=True)
                subprocess.run(["msgattrib", "--no-obsolete", "--no-wrap", "--sort-by-file", "--add-location=file",
                                "-o", str(catalogue), str(catalogue)], check=True)
            return 0
        found = [line for catalogue in catalogues for line in [*complaints(catalogue, template), *unused_words(catalogue)]]
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print("./dev translate brings new messages into po/; then translate them there")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
