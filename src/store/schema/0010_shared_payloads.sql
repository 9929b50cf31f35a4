-- SPDX-License-Identifier: Apache-2.0
-- Schema 10: what the jobs of one submission have in common of what they run is kept once, until the
-- last of them has ended. The row in payloads of a job that is in payload_sharers holds only what is
-- its own.
CREATE TABLE shared_payloads (
  id INTEGER PRIMARY KEY,
  argv BLOB NOT NULL,
  script BLOB,
  environment BLOB NOT NULL,
  config_name TEXT,
  config BLOB NOT NULL,
  umask INTEGER NOT NULL
) STRICT;
-- No column of payloads: to read that a long script would have to be read.
CREATE TABLE payload_sharers (
  job INTEGER PRIMARY KEY REFERENCES payloads (job) ON DELETE CASCADE,
  shared INTEGER NOT NULL REFERENCES shared_payloads (id)
) STRICT;
CREATE INDEX payload_sharers_shared ON payload_sharers (shared);
