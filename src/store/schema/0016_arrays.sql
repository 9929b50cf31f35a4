-- SPDX-License-Identifier: Apache-2.0
-- Schema 16: the tasks of an array are one row until something happens to one of them.

-- Where range_first is there, the row stands for all jobs from that id on up to its own, which are alike
-- in all but id and name. range_naming says how they are called: NULL all the same, -1 each as a job
-- without a name is, else by how much the number behind the last "_" of the name goes up from one to
-- the next. What becomes of one is written into a row of its own, and the others into one or two.
ALTER TABLE jobs ADD COLUMN range_first INTEGER
  CHECK (range_first IS NULL OR (range_first > 0 AND range_first < id AND state < 3));
ALTER TABLE jobs ADD COLUMN range_naming INTEGER CHECK (range_naming <> 0 AND range_naming >= -1);
CREATE INDEX job_ranges ON jobs (id) WHERE range_first IS NOT NULL;
-- Whether any of an array is left is found at once, however many of them have ended.
CREATE INDEX jobs_left ON jobs (id) WHERE end_reason IS NULL;

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
