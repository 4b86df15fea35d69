"""Ways a hierarchy is written down; each reader returns a `CodeTree`, checked by `Hierarchy`."""
