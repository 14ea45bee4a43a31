"""Time expressions: periods and dates."""
