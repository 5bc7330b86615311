"""What commands share that wait for work."""
