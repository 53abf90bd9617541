"""``nqspy exits try``: what exits on trial would do at a live site, found on a copy of it."""
