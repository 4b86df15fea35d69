"""What a reader can learn about people: cells that survive, guesses that come true, proofs."""
