"""A site for authors of exits: the engine under a virtual clock, with words for tests."""
