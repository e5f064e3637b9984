"""The border to SQLite: the one place that knows the database."""
