-- SPDX-License-Identifier: Apache-2.0
-- Schema 22: slices of MIG that gflow made, makes or removes; no other is its own. stage: SliceStage.
CREATE TABLE made_slices (
  node TEXT NOT NULL,
  gpu TEXT NOT NULL,
  profile TEXT NOT NULL,
  start INTEGER NOT NULL CHECK (start >= 0),
  size INTEGER NOT NULL CHECK (size > 0),
  stage INTEGER NOT NULL CHECK (stage BETWEEN 0 AND 3),
  uuid TEXT NOT NULL,
  gpu_instance INTEGER NOT NULL,
  job INTEGER,
  PRIMARY KEY (node, gpu, start)
) STRICT, WITHOUT ROWID;
