"""Parts of the umbrella command `nqspy`."""
