"""What people and programs see: each report is a function of plain data, and a new one is a new file.

`plan.PlanReport` is everything that `spotrail plan` has to say, `stack.StackReport` what `estimate`, `diff` and `check`
have. For people: `table`, `stack_table`, `markdown`, `html`. For programs: `json`, `sarif`, `junit`, `github`,
`infracost_json`, `focus_csv`. `figures`, `layout` and `escapes` are how numbers, lines and foreign text are written;
`headline` and `issues` are the answer and what is wrong, once for all of them.
"""
