"""What an attacker tries, one module for each theme: each of them worked once."""
