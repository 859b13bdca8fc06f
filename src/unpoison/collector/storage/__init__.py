"""Storage: tables, the database that holds them, the writer thread, the read cache, migrations."""
