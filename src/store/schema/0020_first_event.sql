-- SPDX-License-Identifier: Apache-2.0
-- Schema 20: the number that the first event got or gets, where there is none any more or none yet;
-- NULL: not asked for so far.
ALTER TABLE meta ADD COLUMN first_event INTEGER;
