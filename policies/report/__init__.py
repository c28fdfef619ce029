"""What people and programs see: each report is a function of plain data, and a new one is a new file.

`plan.PlanReport` is everything that `spotrail plan` has to say; `table` writes it for people, `json` for programs.
`figures` and `layout` are how numbers and lines are written.
"""
