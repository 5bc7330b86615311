"""What is done with accounts: passwords, sessions, tokens."""
