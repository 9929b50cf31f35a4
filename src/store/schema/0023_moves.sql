-- SPDX-License-Identifier: Apache-2.0
-- Schema 23: from which GPU to which a running job moves, by index and UUID, and why it stayed where
-- it was when it was to move last; NULL: it does not, and did not.
ALTER TABLE jobs ADD COLUMN move_from INTEGER;
ALTER TABLE jobs ADD COLUMN move_to INTEGER;
ALTER TABLE jobs ADD COLUMN move_from_uuid TEXT;
ALTER TABLE jobs ADD COLUMN move_to_uuid TEXT;
ALTER TABLE jobs ADD COLUMN move_refused TEXT;
