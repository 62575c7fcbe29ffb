"""Reports turn records and results into pages, figures and tables."""
