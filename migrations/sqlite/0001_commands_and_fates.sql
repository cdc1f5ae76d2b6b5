-- What was intended, and what became of it. Both tables only ever grow: a
-- command's row says what was known when it was recorded, and every later word
-- on it is a row in `fates`, of which the newest revision counts.
--
-- Times are microseconds since the Unix epoch. The order that counts is `seq`:
-- wall clocks step.

CREATE TABLE commands (
    seq           INTEGER PRIMARY KEY,
    command_id    TEXT    NOT NULL UNIQUE CHECK (command_id <> ''),
    device        TEXT    NOT NULL CHECK (device <> ''),
    -- Not a closed list: a new kind of command is no change of the schema.
    kind          TEXT    NOT NULL CHECK (kind <> ''),
    mutation      INTEGER NOT NULL CHECK (mutation IN (0, 1)),
    app_bundle_id TEXT    CHECK (app_bundle_id <> ''),
    -- Typed text is a secret: its length may be kept, itself never.
    parameters    TEXT    NOT NULL CHECK (json_type(parameters) = 'object' AND json_type(parameters, '$.text') IS NULL),
    caller        TEXT,
    created_us    INTEGER NOT NULL CHECK (created_us >= 0)
) STRICT;

-- An index's last column is the row's seq, so the first two also give each
-- device's and each kind's commands in order.
CREATE INDEX commands_by_device ON commands (device);
CREATE INDEX commands_by_kind ON commands (kind);
CREATE INDEX commands_by_time ON commands (created_us);

CREATE TABLE fates (
    seq            INTEGER PRIMARY KEY,
    command_seq    INTEGER NOT NULL REFERENCES commands (seq),
    -- 0 is the first word on the command; a later one corrects it.
    revision       INTEGER NOT NULL CHECK (revision >= 0),
    fate           TEXT    NOT NULL CHECK (fate IN ('NOT_SENT', 'COMPLETED', 'COMPLETED_RESULT_LOST', 'FAILED', 'UNKNOWN')),
    effect         TEXT    NOT NULL CHECK (effect IN ('NONE', 'APPLIED', 'UNKNOWN')),
    reason         TEXT,
    message        TEXT,
    warning        TEXT,
    reactivated    INTEGER NOT NULL CHECK (reactivated IN (0, 1)),
    attempts       INTEGER NOT NULL CHECK (attempts >= 0),
    recovered      INTEGER NOT NULL CHECK (recovered IN (0, 1)),
    queue_wait_us  INTEGER NOT NULL CHECK (queue_wait_us >= 0),
    device_time_us INTEGER NOT NULL CHECK (device_time_us >= 0),
    concluded_us   INTEGER NOT NULL CHECK (concluded_us >= 0),
    UNIQUE (command_seq, revision)
) STRICT;

CREATE INDEX fates_by_fate ON fates (fate, command_seq);

CREATE TRIGGER commands_are_never_changed BEFORE UPDATE ON commands
BEGIN
    SELECT RAISE(ABORT, 'a recorded command is never changed');
END;

CREATE TRIGGER fates_are_never_changed BEFORE UPDATE ON fates
BEGIN
    SELECT RAISE(ABORT, 'a recorded fate is never changed');
END;
