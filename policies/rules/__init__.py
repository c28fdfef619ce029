"""What is allowed: one rule a file, each with its `RULE`, found by `registry` and run by `engine`.

A new rule is one new file here and one file of cases under tests/policies/rules/cases; nothing else changes, and
`docs/rules.md` is written anew from them. The file is named like the id: `disk_no_reader.py` holds `DISK-NO-READER`.

Files without a `RULE` are what rules share: `model` the words, `bills` the money of a resource, `machines`, `disks`,
`attachments`, `buckets` and `labels` what a resource is, `waivers` and `telling` what goes in and out. A check is pure:
it sees a resource and a `Context`, says `Violation.hidden` for what nobody can see, and takes money from the estimate.
"""
