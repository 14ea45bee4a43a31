"""Reports: tables for terminals and Markdown, charts, HTML pages."""
