-- What phones went through, and what operators have said about them.

-- One row for each link of the kind `transition`; like those of `operations`,
-- they are only ever added, and removed by retention.
CREATE TABLE device_transitions (
    -- That of its link in the chain.
    seq        INTEGER PRIMARY KEY CHECK (seq > 0),
    device     TEXT    NOT NULL CHECK (device <> ''),
    -- Not closed lists: a new state or reason is no change of the schema.
    from_state TEXT    NOT NULL CHECK (from_state <> ''),
    to_state   TEXT    NOT NULL CHECK (to_state <> ''),
    reason     TEXT    NOT NULL CHECK (reason <> ''),
    detail     TEXT,
    at_us      INTEGER NOT NULL CHECK (at_us >= 0)
) STRICT;

-- An index's last column is the row's seq, so this also gives each device's
-- transitions in order.
CREATE INDEX device_transitions_by_device ON device_transitions (device);

CREATE TRIGGER device_transitions_are_never_changed BEFORE UPDATE ON device_transitions
BEGIN
    SELECT RAISE(ABORT, 'a recorded transition is never changed');
END;

-- What holds for a phone now. The only table whose rows change, and no part of
-- the chain: the record of each change is the operation that is written with it.
CREATE TABLE device_settings (
    device              TEXT    NOT NULL PRIMARY KEY CHECK (device <> ''),
    -- One phone's only. Compared byte for byte.
    alias               TEXT    UNIQUE CHECK (alias <> ''),
    labels              TEXT    NOT NULL CHECK (json_type(labels) = 'object'),
    cordon_reason       TEXT,
    cordon_who          TEXT,
    cordon_since_us     INTEGER CHECK (cordon_since_us >= 0),
    cordon_until_us     INTEGER CHECK (cordon_until_us >= 0),
    quarantine_reason   TEXT,
    quarantine_since_us INTEGER CHECK (quarantine_since_us >= 0),
    CHECK ((cordon_reason IS NULL) = (cordon_since_us IS NULL)),
    CHECK ((cordon_who IS NULL) = (cordon_since_us IS NULL)),
    CHECK (cordon_until_us IS NULL OR cordon_since_us IS NOT NULL),
    CHECK ((quarantine_reason IS NULL) = (quarantine_since_us IS NULL))
) STRICT, WITHOUT ROWID;

-- Where a mutation without a fate, or with an UNKNOWN that may still be settled,
-- can be found without a look at every command: after `through`, or in
-- `unsettled`. Those up to `through` that are not listed are settled, which they
-- stay. No part of the chain, since it follows from what is, and may lag behind
-- it: what is listed may have been settled since.
CREATE TABLE survey (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    through INTEGER NOT NULL CHECK (through >= 0)
) STRICT;

INSERT INTO survey (one, through) VALUES (1, 0);

CREATE TABLE unsettled (
    command_seq INTEGER PRIMARY KEY
) STRICT;
