"""Shipped for driver authors: contract suites and fakes."""
