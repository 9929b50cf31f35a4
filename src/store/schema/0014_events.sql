-- SPDX-License-Identifier: Apache-2.0
-- Schema 14: what happened to jobs lately, for those who listen and come back. A row holds what one
-- transaction told, or up to 500 of it, numbered from first on.
CREATE TABLE events (
  first INTEGER PRIMARY KEY CHECK (first > 0),
  at_ms INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count > 0),
  list BLOB NOT NULL
) STRICT;
