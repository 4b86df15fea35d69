"""The home of z = X'y: hierarchies, axes, formulas, designs, tables and releases."""
