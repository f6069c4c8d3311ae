"""Playing any text environment of gymnasium."""
