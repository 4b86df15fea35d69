"""Ways a hierarchy is written down; each reader returns a `Tree`, checked by `Hierarchy`."""
