-- SPDX-License-Identifier: Apache-2.0
-- Schema 19: when the last one ended of the ended jobs that were forgotten; NULL: none was. Which of
-- an older database were is not known: those before the first that is left, at least.
ALTER TABLE meta ADD COLUMN forgotten_ms INTEGER;
UPDATE meta SET forgotten_ms = (SELECT min(ended_ms) FROM jobs);
