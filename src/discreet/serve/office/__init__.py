"""The office's side of the table builder: accounts, limits, the audit log and the admin page.

Nothing here sees a figure: the store holds who asked for what, and how it ended.
"""
