-- SPDX-License-Identifier: Apache-2.0
-- Schema 11: a drained device is found again by its UUID, and what was said once of an attempt that
-- uses more of the devices than it was given is not said again after a restart.
ALTER TABLE drains ADD COLUMN uuid TEXT;
ALTER TABLE jobs ADD COLUMN over_memory INTEGER;
ALTER TABLE jobs ADD COLUMN on_other_gpus INTEGER;
