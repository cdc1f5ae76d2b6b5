-- Who may drive which phone, and on whose behalf a command was carried out.

-- Who asked, by name. NULL in what was recorded before this was kept.
ALTER TABLE commands ADD COLUMN principal TEXT CHECK (principal <> '');
-- The lease that the phone was driven under, and the epoch of its grant; both
-- NULL for what needed none.
ALTER TABLE commands ADD COLUMN lease_id TEXT CHECK (lease_id <> '');
ALTER TABLE commands ADD COLUMN lease_epoch INTEGER
    CHECK (lease_epoch >= 0 AND (lease_id IS NULL) = (lease_epoch IS NULL));

-- Typed text is a secret here too.
CREATE TRIGGER operations_hold_no_typed_text BEFORE INSERT ON operations
WHEN json_type(NEW.detail, '$.text') IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'an operation holds no typed text');
END;

-- An index's last column is the row's seq, so the first two also give what was
-- done to each target, and each thing that was done, in order.
CREATE INDEX operations_by_target ON operations (target);
CREATE INDEX operations_by_what ON operations (what);
CREATE INDEX operations_by_time ON operations (at_us);

-- Leases, as whoever grants them says that they are. Like those of
-- `device_settings` its rows change and are no part of the chain: the record of
-- each change that counts is an operation that is written with it.
CREATE TABLE leases (
    -- The order of creation.
    seq        INTEGER PRIMARY KEY,
    lease_id   TEXT    NOT NULL UNIQUE CHECK (lease_id <> ''),
    owner      TEXT    NOT NULL CHECK (owner <> ''),
    -- By which its owner may ask for it again.
    request_id TEXT    CHECK (request_id <> ''),
    -- Not a closed list: a new state is no change of the schema.
    state      TEXT    NOT NULL CHECK (state <> ''),
    is_open    INTEGER NOT NULL CHECK (is_open IN (0, 1)),
    -- That of its grant; of two grants the later has the higher one.
    epoch      INTEGER UNIQUE CHECK (epoch > 0),
    -- The phones that it was granted.
    devices    TEXT    NOT NULL CHECK (json_type(devices) = 'array'),
    created_us INTEGER NOT NULL CHECK (created_us >= 0),
    ended_us   INTEGER CHECK (ended_us >= 0),
    -- Whatever else there is to it: nothing in here looks into that.
    body       TEXT    NOT NULL CHECK (json_valid(body) AND json_type(body) = 'object'),
    UNIQUE (owner, request_id),
    CHECK (is_open = 1 OR ended_us IS NOT NULL)
) STRICT;

CREATE INDEX leases_open ON leases (seq) WHERE is_open = 1;
CREATE INDEX leases_by_end ON leases (ended_us) WHERE is_open = 0;
CREATE INDEX leases_by_state ON leases (state);

-- An open lease is a promise that somebody may rely on.
CREATE TRIGGER open_leases_are_never_removed BEFORE DELETE ON leases WHEN OLD.is_open = 1
BEGIN
    SELECT RAISE(ABORT, 'an open lease is never removed');
END;

-- The leases of each phone, in order: follows from `leases`, and is kept by it.
CREATE TABLE lease_devices (
    device TEXT    NOT NULL,
    lease  INTEGER NOT NULL,
    PRIMARY KEY (device, lease)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER leases_list_their_devices AFTER INSERT ON leases
BEGIN
    INSERT INTO lease_devices (device, lease) SELECT DISTINCT value, NEW.seq FROM json_each(NEW.devices);
END;

CREATE TRIGGER leases_list_their_devices_anew AFTER UPDATE OF devices ON leases WHEN NEW.devices <> OLD.devices
BEGIN
    DELETE FROM lease_devices WHERE lease = OLD.seq AND device IN (SELECT value FROM json_each(OLD.devices));
    INSERT INTO lease_devices (device, lease) SELECT DISTINCT value, NEW.seq FROM json_each(NEW.devices);
END;

CREATE TRIGGER leases_take_their_devices_along AFTER DELETE ON leases
BEGIN
    DELETE FROM lease_devices WHERE lease = OLD.seq AND device IN (SELECT value FROM json_each(OLD.devices));
END;

-- How far the time has run that leases are counted in, and the last epoch that
-- was ever given: the leases that tell it may be gone.
CREATE TABLE lease_clock (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    clock_us   INTEGER NOT NULL CHECK (clock_us >= 0),
    last_epoch INTEGER NOT NULL CHECK (last_epoch >= 0)
) STRICT;

INSERT INTO lease_clock (one, clock_us, last_epoch) VALUES (1, 0, 0);

CREATE TRIGGER lease_clock_never_goes_back BEFORE UPDATE ON lease_clock
WHEN NEW.clock_us < OLD.clock_us OR NEW.last_epoch < OLD.last_epoch
BEGIN
    SELECT RAISE(ABORT, 'the clock of leases never goes back');
END;

CREATE TRIGGER lease_clock_is_never_removed BEFORE DELETE ON lease_clock
BEGIN
    SELECT RAISE(ABORT, 'the clock of leases is never removed');
END;
