-- SPDX-License-Identifier: Apache-2.0
-- Schema 3: how many batches were committed, compared with gflow.db.ids at the start so that the loss
-- of any is noticed. The events, which nothing read, go.
ALTER TABLE meta ADD COLUMN commits INTEGER NOT NULL DEFAULT 0 CHECK (commits >= 0);
DROP TABLE events;
