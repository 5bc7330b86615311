"""The home page and the navigation, which know the pages of all apps."""
