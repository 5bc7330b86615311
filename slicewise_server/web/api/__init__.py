"""What all operations of the API share: pages of results, problem details, fields."""
