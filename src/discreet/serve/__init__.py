"""The table builder: pages and their JSON twins, made from releases only.

`source` asks a recipe for releases; nothing else in this folder can reach the records.
"""
