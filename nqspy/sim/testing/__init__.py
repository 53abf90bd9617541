"""A site in the hands of whoever writes its exits: the engine under a virtual clock, with words for tests."""
