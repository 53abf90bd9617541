"""Numbers and pages: pure functions from events, the site and rows to data and text."""
