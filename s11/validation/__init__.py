"""The cost model held against measured tables: kernels, and whole serving runs."""

from s11.validation.report import FILES, Validation, validate

__all__ = ["FILES", "Validation", "validate"]
