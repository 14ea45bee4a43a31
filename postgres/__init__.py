"""A thin layer over psycopg shared by the graph and the store: fetching rows, prepared statements and arrays."""
