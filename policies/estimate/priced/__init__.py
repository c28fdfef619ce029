"""One module for each priced thing. A module is found by its `PRICED`; a new one touches no other file."""
