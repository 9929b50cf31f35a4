-- SPDX-License-Identifier: Apache-2.0
-- Schema 15: who suspended a job by hand; NULL: nobody, and it goes on when there is room.
ALTER TABLE jobs ADD COLUMN suspended_by TEXT;
