"""From a project to a record: what is asked of Google's APIs, how, and what is kept of the answers."""
