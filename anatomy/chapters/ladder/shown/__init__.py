"""The ladder on its pages: tables and charts, and what each script changes from the one before."""
