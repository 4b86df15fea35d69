"""Interfaces for programs."""
