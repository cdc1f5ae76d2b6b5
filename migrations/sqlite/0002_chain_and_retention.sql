-- What a replay needs, corrections of a fate, and the chain that makes tampering
-- show. `commands`, `fates`, `operations`, `checkpoints` and `chain` are only
-- ever added to, but for retention: it removes what is oldest from all of them
-- and leaves a checkpoint that says so.

-- What the caller asked for, to tell a repetition from another command of the
-- same id. NULL in what was recorded before this was kept.
ALTER TABLE commands ADD COLUMN asked TEXT
    CHECK (asked IS NULL OR (json_type(asked) = 'object' AND json_type(asked, '$.text') IS NULL));

-- The reply of a mutation: how long it was, and itself unless it was too long.
ALTER TABLE fates ADD COLUMN reply TEXT;
ALTER TABLE fates ADD COLUMN reply_bytes INTEGER CHECK (reply_bytes >= 0);
ALTER TABLE fates ADD COLUMN hint TEXT;
-- Why a later revision was made.
ALTER TABLE fates ADD COLUMN why TEXT;
-- An UNKNOWN that nobody will ever settle.
ALTER TABLE fates ADD COLUMN final INTEGER NOT NULL DEFAULT 0 CHECK (final IN (0, 1));

-- Who this ledger is.
CREATE TABLE identity (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    ledger_id  TEXT    NOT NULL CHECK (length(ledger_id) = 32),
    created_us INTEGER NOT NULL CHECK (created_us >= 0)
) STRICT;

-- What was done to the ledger or the gateway rather than to a phone.
CREATE TABLE operations (
    seq    INTEGER PRIMARY KEY,
    who    TEXT    NOT NULL CHECK (who <> ''),
    what   TEXT    NOT NULL CHECK (what <> ''),
    target TEXT,
    detail TEXT    NOT NULL CHECK (json_type(detail) = 'object'),
    at_us  INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;

-- Up to where the chain was pruned. The newest says where it begins now.
CREATE TABLE checkpoints (
    seq               INTEGER PRIMARY KEY,
    ledger_id         TEXT    NOT NULL,
    -- The last link that was removed.
    chain_seq         INTEGER NOT NULL CHECK (chain_seq > 0),
    chain_hash        BLOB    NOT NULL CHECK (length(chain_hash) = 32),
    -- No command that was ever removed is younger, by its row or by its id.
    pruned_through_us INTEGER NOT NULL CHECK (pruned_through_us >= 0),
    -- Since the ledger was made.
    commands_pruned   INTEGER NOT NULL CHECK (commands_pruned >= 0),
    at_us             INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;

-- One link for each event. What a kind's reference means, and what is hashed,
-- stands in services/ledger/src/canonical.rs.
CREATE TABLE chain (
    seq       INTEGER PRIMARY KEY CHECK (seq > 0),
    kind      TEXT    NOT NULL CHECK (kind <> ''),
    reference INTEGER NOT NULL,
    at_us     INTEGER NOT NULL CHECK (at_us >= 0),
    hash      BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

CREATE TRIGGER identity_is_never_changed BEFORE UPDATE ON identity
BEGIN
    SELECT RAISE(ABORT, 'a ledger''s identity is never changed');
END;

CREATE TRIGGER operations_are_never_changed BEFORE UPDATE ON operations
BEGIN
    SELECT RAISE(ABORT, 'a recorded operation is never changed');
END;

CREATE TRIGGER checkpoints_are_never_changed BEFORE UPDATE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'a checkpoint is never changed');
END;

CREATE TRIGGER chain_is_never_changed BEFORE UPDATE ON chain
BEGIN
    SELECT RAISE(ABORT, 'a link of the chain is never changed');
END;
