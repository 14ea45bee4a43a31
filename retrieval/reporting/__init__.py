"""Reports for people: tables in print and Markdown, charts, HTML pages."""
