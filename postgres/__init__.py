"""A thin layer over psycopg shared by the graph and the store: prepared statements and arrays."""
