"""From records to a table: engines that group, and the plan of what to ask them."""
