-- SPDX-License-Identifier: Apache-2.0
-- Schema 12: jobs that hold GPUs for a program outside, and run nothing themselves.
ALTER TABLE jobs ADD COLUMN allocation INTEGER;
