"""What tables are made of, for both halves of the package: the columns, each declared once."""
