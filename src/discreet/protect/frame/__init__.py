"""The common frame of methods: a noise method adds its law and a sentence to it."""
