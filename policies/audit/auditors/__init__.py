"""What the audit looks for, one thing a file: each module names its AUDITOR and is found by that."""
