"""Questions asked of a warehouse: the ready SQL queries, each one a file."""
