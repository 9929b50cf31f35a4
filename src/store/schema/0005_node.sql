-- SPDX-License-Identifier: Apache-2.0
-- Schema 5: every node has a name, the daemon's own, too. NULL until a daemon has told it; rows
-- written before have NULL or '' for it.
ALTER TABLE meta ADD COLUMN node TEXT;
