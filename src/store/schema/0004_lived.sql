-- SPDX-License-Identifier: Apache-2.0
-- Schema 4: the time gflow itself has seen pass, which no setting of the clock changes: how long an
-- ended job is kept is counted on it. Of jobs that ended before this schema it counts from now on.
ALTER TABLE meta ADD COLUMN lived_ms INTEGER NOT NULL DEFAULT 0 CHECK (lived_ms >= 0);
ALTER TABLE meta ADD COLUMN lived_mono_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN lived_boot_id TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN lived_ms INTEGER;
