# SPDX-License-Identifier: Apache-2.0
"""docs/format/store.md and the database are compared: neither has a table or a column that the other has not."""

import re
import sqlite3
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/format/store.md"


def described():
    """The words in code of what is said of each table."""
    text = PAGE.read_text().partition("\n## Tables\n")[2].partition("\n## ")[0]
    # Where it is spoken of, and not only named: "(see **meta**)".
    names = list(re.finditer(r"\*\*(\w+)\*\*(?=,| by| `)", text))
    ends = [name.start() for name in names[1:]] + [len(text)]
    told = {name[1]: text[name.end():end] for name, end in zip(names, ends, strict=True)}
    return {name: set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", part)))) for name, part in told.items()}


def test_it_has_every_table_and_column(machine):
    machine.down()
    database = sqlite3.connect(machine.state / "gflow.db")
    tables = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    told = described()
    assert set(told) == set(tables)
    columns = {table: {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")} for table in tables}
    database.close()
    assert {table: names - told[table] for table, names in columns.items() if names - told[table]} == {}
