"""What is on disk: graph records, table schemas, snapshots, and the SQL that reads them."""
