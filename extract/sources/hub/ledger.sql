-- Statements of the ledger, each after a line that names it.
-- name: create
CREATE TABLE IF NOT EXISTS listings (key TEXT PRIMARY KEY, next TEXT NOT NULL, done INTEGER NOT NULL, seen INTEGER NOT NULL, round INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS models (name TEXT PRIMARY KEY, sha TEXT NOT NULL, grouping TEXT NOT NULL, class TEXT NOT NULL, message TEXT NOT NULL, entry TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (key TEXT NOT NULL, place INTEGER NOT NULL, round INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS configs (grouping TEXT NOT NULL, name TEXT NOT NULL, sha TEXT NOT NULL, class TEXT NOT NULL, message TEXT NOT NULL, config TEXT NOT NULL, PRIMARY KEY (grouping, name)) WITHOUT ROWID;
-- name: listing
SELECT next, done, seen, round FROM listings WHERE key = ?
-- name: set_listing
INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?)
-- name: put_model
INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, ?)
-- name: put_member
INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)
-- name: drop_members
DELETE FROM members WHERE key = ? AND round <> ?
-- name: members
SELECT m.name, m.sha, m.grouping, m.class, m.message, m.entry FROM members AS p JOIN models AS m ON m.name = p.name WHERE p.key = ? ORDER BY p.place
-- name: put_config
INSERT OR REPLACE INTO configs VALUES (?, ?, ?, ?, ?, ?)
-- name: configs
SELECT grouping, name, sha, class, message, config FROM configs
