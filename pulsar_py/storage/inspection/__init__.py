"""Looking at a storage that nobody serves: what is broken, what is in it, and what can be saved."""
