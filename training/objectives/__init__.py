"""What a run optimises: one file per objective; each gives the loop its batches, loss and development score."""
