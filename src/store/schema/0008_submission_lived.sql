-- SPDX-License-Identifier: Apache-2.0
-- Schema 8: an idempotency key is kept for 24 hours of the time gflow sees pass (meta.lived_ms), which
-- no setting of the clock changes. Of keys from before it counts from now on.
ALTER TABLE submissions RENAME COLUMN at_ms TO at_lived_ms;
UPDATE submissions SET at_lived_ms = (SELECT lived_ms FROM meta);
