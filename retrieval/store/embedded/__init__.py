"""The PostgreSQL server that Trivet runs itself."""
