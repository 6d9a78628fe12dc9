"""The whole REST API: the list of all resources, above the rooms that have them."""
