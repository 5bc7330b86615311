"""Operations on accounts: passwords, tokens, limits on sign-ins."""
