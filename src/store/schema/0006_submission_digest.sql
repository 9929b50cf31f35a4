-- SPDX-License-Identifier: Apache-2.0
-- Schema 6: what was submitted under an idempotency key, so that another submission with the key is
-- refused. '' in rows from before: whatever comes with the key is taken for a repetition.
ALTER TABLE submissions ADD COLUMN digest TEXT NOT NULL DEFAULT '';
