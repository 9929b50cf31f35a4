-- SPDX-License-Identifier: Apache-2.0
-- Schema 17: the most of each GPU that a job may use where others leave it; NULL: its share.
ALTER TABLE jobs ADD COLUMN share_limit_parts INTEGER CHECK (share_limit_parts BETWEEN 1 AND 10000);
