-- SPDX-License-Identifier: Apache-2.0
-- Schema 13: tokens by which programs ask in their owner's name from elsewhere. Of the secret only its
-- SHA-256 is here. scope: 0 read, 1 submit, 2 operate, 3 admin. expires_ms: NULL is never.
CREATE TABLE tokens (
  uid INTEGER NOT NULL,
  user TEXT NOT NULL,
  name TEXT NOT NULL,
  scope INTEGER NOT NULL CHECK (scope BETWEEN 0 AND 3),
  digest TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER,
  PRIMARY KEY (uid, name)
) STRICT, WITHOUT ROWID;
