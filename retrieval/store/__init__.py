"""The database: the embedded PostgreSQL, the pool, migrations, and one module per table."""
