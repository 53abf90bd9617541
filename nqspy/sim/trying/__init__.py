"""``nqspy exits try``: what exits on trial would change at a live site, found on a copy of it."""
