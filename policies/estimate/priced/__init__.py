"""One module for each priced thing. A module is found by its `PRICED`; a new one touches no other file.

`PRICED` names the type tokens and a function from a resource and the market to a `ResourceEstimate`. It reads inputs by
`Resource.text`, `number`, `integer`, `flag` and `items`, which give back what is opaque, makes lines by `Market.line`
(or `Market.used`, for what bills by usage) and puts them together by `bill`. It raises ResourceError, which the engine
turns into an unknown price, for an input that cannot be what it says. Tests: tests/policies/estimate/priced.
"""
