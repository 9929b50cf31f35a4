-- SPDX-License-Identifier: Apache-2.0
-- Schema 7: what decides and was not stored, so that a restart decides as if there had been none. How
-- long jobs wait and pause is counted on the time gflow sees pass (meta.lived_ms), which no setting
-- of the clock changes. Of jobs from before, as if it had seen all since their submission.
ALTER TABLE jobs ADD COLUMN submitted_lived_ms INTEGER;
ALTER TABLE jobs ADD COLUMN not_before_lived_ms INTEGER;
ALTER TABLE jobs ADD COLUMN requeue_why TEXT;
ALTER TABLE jobs ADD COLUMN preemption_lived_ms INTEGER;
ALTER TABLE jobs ADD COLUMN victims TEXT;
UPDATE jobs SET submitted_lived_ms = (SELECT lived_ms FROM meta) + submitted_ms
  - (SELECT max(max(submitted_ms, coalesce(started_ms, 0), coalesce(ended_ms, 0))) FROM jobs);

-- Nodes on which launches fail. tried: numbers of jobs, as in submissions.
CREATE TABLE node_health (
  node TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  failures INTEGER NOT NULL CHECK (failures > 0),
  retry_at_lived_ms INTEGER NOT NULL,
  trial INTEGER,
  tried TEXT NOT NULL
) STRICT, WITHOUT ROWID;
