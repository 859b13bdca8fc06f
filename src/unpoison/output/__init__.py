"""Output for people: pictures, tables, progress bars, and tables in Markdown pages."""
