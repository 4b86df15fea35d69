"""Records that stay in their engine: sources, roles, keys, codes, and engines that count them."""
