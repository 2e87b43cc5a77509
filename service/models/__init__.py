"""Model folders: found, verified, opened, registered and reloaded."""
