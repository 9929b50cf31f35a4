-- SPDX-License-Identifier: Apache-2.0
-- Schema 1. docs/format/store.md explains it. Never change a schema file once it was released:
-- add the next number.

-- What was asked for and where it stands. Times are milliseconds since 1970 UTC; enumerations have
-- the numbers of src/core/job.h, `state` those of src/store/job_row.cpp.
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  name TEXT NOT NULL,
  uid INTEGER NOT NULL,
  user TEXT NOT NULL,
  project TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  cpus INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  time_limit_seconds INTEGER,
  grace_seconds INTEGER NOT NULL,
  begin_ms INTEGER,
  dependency_mode INTEGER NOT NULL CHECK (dependency_mode BETWEEN 1 AND 2),
  auto_cancel INTEGER NOT NULL CHECK (auto_cancel IN (0, 1)),
  hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
  requeue INTEGER NOT NULL CHECK (requeue IN (0, 1)),
  max_retries INTEGER NOT NULL,
  "group" TEXT NOT NULL,
  max_concurrent INTEGER NOT NULL,
  command TEXT NOT NULL,
  work_dir TEXT NOT NULL,
  submitted_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retries INTEGER NOT NULL,
  state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
  status INTEGER NOT NULL CHECK (status BETWEEN 1 AND 10),
  launch_failures INTEGER NOT NULL,
  held_why TEXT,
  -- The attempt that runs, or ran last.
  attempt INTEGER,
  gpu_indices TEXT,
  started_ms INTEGER,
  started_mono_ms INTEGER,
  boot_id TEXT,
  pid INTEGER,
  -- Why it was told to stop.
  stop_reason INTEGER CHECK (stop_reason BETWEEN 1 AND 9),
  stop_uid INTEGER,
  stop_user TEXT,
  stop_signal INTEGER,
  -- How it ended.
  end_reason INTEGER CHECK (end_reason BETWEEN 1 AND 9),
  exit_code INTEGER,
  signal INTEGER,
  message TEXT,
  run_time_ms INTEGER,
  cpu_time_ms INTEGER,
  peak_memory_bytes INTEGER,
  ended_ms INTEGER,
  CHECK ((state = 2) = (held_why IS NOT NULL)),
  CHECK (state NOT IN (3, 4) OR attempt IS NOT NULL),
  CHECK ((state = 5) = (end_reason IS NOT NULL))
) STRICT;

-- Which jobs have to finish first. on_job may be forgotten before job is.
CREATE TABLE dependencies (
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  on_job INTEGER NOT NULL,
  PRIMARY KEY (job, on_job)
) STRICT, WITHOUT ROWID;

-- What is run. argv and environment: each string as its length in 4 bytes, little-endian, then itself.
CREATE TABLE payloads (
  job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  argv BLOB NOT NULL,
  script BLOB,
  environment BLOB NOT NULL,
  config_name TEXT,
  config BLOB NOT NULL,
  umask INTEGER NOT NULL
) STRICT;

-- Every change of a job's status, in order. Rows are only added, and go when the job is forgotten.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  status INTEGER NOT NULL CHECK (status BETWEEN 1 AND 10),
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_job ON events (job);

-- Submissions by idempotency key, kept for 24 hours. jobs: "5-14,20".
CREATE TABLE submissions (
  uid INTEGER NOT NULL,
  key TEXT NOT NULL,
  jobs TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (uid, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_by_age ON submissions (at_ms);

-- One row. next_id: the smallest id never given out.
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_id INTEGER NOT NULL CHECK (next_id > 0)
) STRICT;
INSERT INTO meta (one, next_id) VALUES (1, 1);
