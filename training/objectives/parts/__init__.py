"""What several objectives use: batches, losses, penalties, noise."""
