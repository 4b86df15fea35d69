"""The table builder: sites of data sets, their pages and interfaces, made from protected cubes.

`build` and `data.live` touch records; nothing else in this folder can reach them.
"""
