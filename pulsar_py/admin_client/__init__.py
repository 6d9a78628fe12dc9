"""admin_client."""
