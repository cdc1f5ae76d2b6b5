//! What reading page by page has in common, whatever is read.
//!
//! A page is found in slices of the sequence, each one short read with a
//! snapshot of its own. Whatever filters are set and whatever plan SQLite makes
//! of them, a read looks at a bounded number of rows and soon lets go of the
//! WAL. What is recorded meanwhile comes before the first page and never shifts
//! a page.

use serde::Serialize;
use sqlx::{AssertSqlSafe, QueryBuilder, Sqlite, SqlitePool};

use crate::batch::rows::json;
use crate::canonical::Hash;

const DEFAULT_PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;

/// Most queries are answered by the first slice; those that find little look
/// at larger ones.
const FIRST_SLICE: i64 = 4096;
const LARGEST_SLICE: i64 = 65_536;

/// How many rows a page holds for whoever asks for so many.
pub(crate) fn size(asked: u32) -> usize {
    match asked {
        0 => DEFAULT_PAGE as usize,
        asked => asked.min(LARGEST_PAGE) as usize,
    }
}

/// Slices of a sequence, the newest first: each up to but not including its
/// second number, and not before its first.
#[derive(Debug)]
pub(crate) struct Slices {
    before: i64,
    floor: i64,
    slice: i64,
}

impl Slices {
    /// Those of what is before `before` and not before `floor`.
    pub(crate) fn down(before: i64, floor: i64) -> Self {
        Self {
            before,
            floor,
            slice: FIRST_SLICE,
        }
    }
}

impl Iterator for Slices {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        let before = self.before;
        if before <= self.floor {
            return None;
        }
        self.before = self.floor.max(before.saturating_sub(self.slice));
        self.slice = (self.slice * 4).min(LARGEST_SLICE);
        Some((self.before, before))
    }
}

/// The rows that a table holds: all before the first number, none before the
/// second.
pub(crate) async fn whole(
    pool: &SqlitePool,
    table: &'static str,
) -> Result<(i64, i64), sqlx::Error> {
    let sql = format!("SELECT (SELECT max(seq) FROM {table}), (SELECT min(seq) FROM {table})");
    let (newest, oldest): (Option<i64>, Option<i64>) =
        sqlx::query_as(AssertSqlSafe(sql)).fetch_one(pool).await?;
    Ok((
        newest.map_or(0, |newest| newest + 1),
        oldest.unwrap_or_default(),
    ))
}

/// What a query's filters are told by in a token: they may be as long as
/// somebody likes.
pub(crate) fn digest<T: Serialize>(filters: &T) -> Result<String, sqlx::Error> {
    Ok(Hash::of(json(filters)?.as_bytes()).to_string())
}

/// A list to be searched by `IN`.
pub(crate) fn push_list(sql: &mut QueryBuilder<Sqlite>, values: impl Iterator<Item = String>) {
    sql.push("(");
    let mut list = sql.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    sql.push(")");
}
