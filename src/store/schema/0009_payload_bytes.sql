-- SPDX-License-Identifier: Apache-2.0
-- Schema 9: what a job's payload takes, which is limited for each user; and payloads of jobs that have
-- ended, which nothing reads, are not kept.
ALTER TABLE jobs ADD COLUMN payload_bytes INTEGER;
DELETE FROM payloads WHERE job IN (SELECT id FROM jobs WHERE state = 5);
UPDATE jobs SET payload_bytes = (
  SELECT length(argv) + coalesce(length(script), 0) + length(environment) + length(config)
  FROM payloads WHERE job = id);
