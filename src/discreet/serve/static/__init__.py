"""A site as files alone: what can be one, its rules and cells as data, and its pages' templates."""
