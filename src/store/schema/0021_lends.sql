-- SPDX-License-Identifier: Apache-2.0
-- Schema 21: whether a running job lends its GPU while it leaves it idle; NULL: it does not.
ALTER TABLE jobs ADD COLUMN lends INTEGER;
