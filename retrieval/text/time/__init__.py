"""Time expressions: periods, dates and their index terms."""
