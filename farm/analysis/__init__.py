"""DERIVE: samples and events become figures and verdicts. Pure."""
