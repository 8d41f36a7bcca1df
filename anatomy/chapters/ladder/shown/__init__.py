"""The ladder on its pages: tables, charts, and what a script changes."""
