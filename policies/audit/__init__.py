"""The live audit: what exists and how it is used, from Google's APIs or a recorded file, to verdicts, money, remedies.

Data flows one way: clients -> Record -> auditors -> Audit -> remedies and reports. Everything after the record is pure,
so a recorded week gives the same verdicts without a cloud. A new thing to judge is one new file in `auditors/`.

Where what is, in the order of the flow:

- `live/` asks the APIs and makes the record (`recording`); `record` is what it holds, `files/` its file form.
- What a resource of a record says: `reading` (its fields), `links` (its name), `subjects` (what a report calls it),
  `states`, `groups` and `clusters` (who made a machine and keeps it), `lineage` (what a disk was made of), `ttl`,
  `schedule`, `times`.
- What a series of a record says: `telemetry/`.
- `judge` runs every auditor of `auditors/` (found by `registry`) with one `context`: the record, the prices (`pricing`,
  `as_pulumi`, `doubts`, `shares`) and the thresholds (`terms`).
- An auditor of one sort of resource is one file; the two that are more have rooms of their own, `volumes/`, `slices/`.
- `model` and `findings` are what comes out, `telling` how a verdict is put together, `resting` and `scheduling` which
  remedies stand, `outcome` the exit code.
- `remedies/` turns verdicts into steps, writes them down, and does them.
"""
