-- SPDX-License-Identifier: Apache-2.0
-- Schema 21: whether a running job lends its GPU while it leaves it idle, and whether a GPU was lent
-- to an attempt; NULL: not.
ALTER TABLE jobs ADD COLUMN lends INTEGER;
ALTER TABLE jobs ADD COLUMN borrows INTEGER;
