"""What is asked for, where chance comes from, and what is said of the result."""
