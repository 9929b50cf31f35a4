-- SPDX-License-Identifier: Apache-2.0
-- Schema 2: shares, nodes, preemption, drains. CHECKs cannot be changed in place, so both tables
-- are made anew (https://www.sqlite.org/lang_altertable.html, section 7). upgrade() has switched
-- foreign keys off, or dropping a table would empty those that point to it.

-- What schema 1 did not know is NULL where it is plain: most jobs ask for whole devices of one
-- machine and are never preempted. models, selector, peers: lists of strings as in payloads.
CREATE TABLE jobs_2 (
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
  status INTEGER NOT NULL CHECK (status BETWEEN 1 AND 11),
  launch_failures INTEGER NOT NULL,
  held_why TEXT,
  -- The attempt that runs, or ran last.
  attempt INTEGER,
  gpu_indices TEXT,
  started_ms INTEGER,
  started_mono_ms INTEGER,
  boot_id TEXT,
  pid INTEGER,
  cpu_list TEXT,
  node TEXT,
  peers BLOB,
  placed_because TEXT,
  -- Since when it stands still, and how long it did before.
  suspended_mono_ms INTEGER,
  stood_ms INTEGER,
  -- Why it was told to stop.
  stop_reason INTEGER CHECK (stop_reason BETWEEN 1 AND 11),
  stop_uid INTEGER,
  stop_user TEXT,
  stop_signal INTEGER,
  -- How it ended.
  end_reason INTEGER CHECK (end_reason BETWEEN 1 AND 11),
  exit_code INTEGER,
  signal INTEGER,
  message TEXT,
  run_time_ms INTEGER,
  cpu_time_ms INTEGER,
  peak_memory_bytes INTEGER,
  peak_gpu_memory_bytes INTEGER,
  ended_ms INTEGER,
  -- What more it asked for.
  share_parts INTEGER CHECK (share_parts BETWEEN 1 AND 10000),
  gpu_memory_bytes INTEGER,
  gpu_mode INTEGER CHECK (gpu_mode BETWEEN 1 AND 3),
  vendor TEXT,
  models BLOB,
  see_all INTEGER CHECK (see_all IN (0, 1)),
  nodes INTEGER CHECK (nodes > 0),
  selector BLOB,
  preemption INTEGER CHECK (preemption BETWEEN 1 AND 3),
  preempt_signal INTEGER,
  -- What it has behind it.
  preemptions INTEGER,
  served_ms INTEGER,
  CHECK ((state = 2) = (held_why IS NOT NULL)),
  CHECK (state NOT IN (3, 4) OR attempt IS NOT NULL),
  CHECK ((state = 5) = (end_reason IS NOT NULL)),
  CHECK (suspended_mono_ms IS NULL OR state = 4)
) STRICT;
INSERT INTO jobs_2 (
  id, name, uid, user, project, gpus, cpus, memory_bytes, priority, time_limit_seconds,
  grace_seconds, begin_ms, dependency_mode, auto_cancel, hold, requeue, max_retries, "group",
  max_concurrent, command, work_dir, submitted_ms, attempts, retries, state, status,
  launch_failures, held_why, attempt, gpu_indices, started_ms, started_mono_ms, boot_id, pid,
  stop_reason, stop_uid, stop_user, stop_signal, end_reason, exit_code, signal, message,
  run_time_ms, cpu_time_ms, peak_memory_bytes, ended_ms)
SELECT
  id, name, uid, user, project, gpus, cpus, memory_bytes, priority, time_limit_seconds,
  grace_seconds, begin_ms, dependency_mode, auto_cancel, hold, requeue, max_retries, "group",
  max_concurrent, command, work_dir, submitted_ms, attempts, retries, state, status,
  launch_failures, held_why, attempt, gpu_indices, started_ms, started_mono_ms, boot_id, pid,
  stop_reason, stop_uid, stop_user, stop_signal, end_reason, exit_code, signal, message,
  run_time_ms, cpu_time_ms, peak_memory_bytes, ended_ms
FROM jobs ORDER BY id;
DROP TABLE jobs;
ALTER TABLE jobs_2 RENAME TO jobs;

CREATE TABLE events_2 (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  status INTEGER NOT NULL CHECK (status BETWEEN 1 AND 11),
  detail TEXT NOT NULL
) STRICT;
INSERT INTO events_2 SELECT seq, job, at_ms, status, detail FROM events ORDER BY seq;
-- The highest number ever given, also where its row is gone.
DELETE FROM sqlite_sequence WHERE name = 'events_2';
INSERT INTO sqlite_sequence (name, seq)
  SELECT 'events_2', seq FROM sqlite_sequence WHERE name = 'events';
DROP TABLE events;
ALTER TABLE events_2 RENAME TO events;
CREATE INDEX events_of_job ON events (job);

-- Devices and whole nodes an administrator lets nothing new start on, in their order.
CREATE TABLE drains (
  position INTEGER PRIMARY KEY,
  node TEXT NOT NULL,
  gpu INTEGER,
  reason TEXT NOT NULL,
  by_user TEXT NOT NULL
) STRICT;
