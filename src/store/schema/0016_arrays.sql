-- SPDX-License-Identifier: Apache-2.0
-- Schema 16: the tasks of an array are one row until something happens to one of them.

-- Where run_first is there, the row stands for all jobs from that id on up to its own, which are alike
-- in all but id and name. run_naming says how they are called: NULL all the same, -1 each as a job
-- without a name is, else by how much the number behind the last "_" of the name goes up from one to
-- the next. What becomes of one is written into a row of its own, and the others into one or two.
ALTER TABLE jobs ADD COLUMN run_first INTEGER CHECK (run_first > 0 AND run_first < id);
ALTER TABLE jobs ADD COLUMN run_naming INTEGER CHECK (run_naming <> 0 AND run_naming >= -1);
CREATE INDEX job_runs ON jobs (id) WHERE run_first IS NOT NULL;

-- What the tasks of an array run, in place of a row in payloads for each: what they share, with
-- GFLOW_ARRAY_TASK_ID set to first_task, first_task + step, ... It goes when all have ended.
CREATE TABLE arrays (
  first INTEGER PRIMARY KEY CHECK (first > 0),
  count INTEGER NOT NULL CHECK (count > 0),
  first_task INTEGER NOT NULL CHECK (first_task >= 0),
  step INTEGER NOT NULL CHECK (step > 0),
  shared INTEGER NOT NULL REFERENCES shared_payloads (id)
) STRICT;
CREATE INDEX arrays_shared ON arrays (shared);
