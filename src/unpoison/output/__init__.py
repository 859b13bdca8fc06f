"""What people look at: pictures, tables, Markdown and progress bars."""
