"""One static page to look at the episodes of a file; it needs no server and loads nothing from elsewhere."""
