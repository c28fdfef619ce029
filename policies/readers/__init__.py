"""What a stack is, read from the files that Pulumi writes. No Pulumi, no program, no network: files only.

`source.open_source` and `source.read_source` are the way in: they find out what a file is and give a `Reading`.
What is none of the known documents is refused by name; an empty stack is never made of it.

A new source is one new file here with a `READER` (see `registry`): which documents it claims, which of their long lists
are converted element by element while the text is read, so that a large file is never held as plain JSON, and how a
`Reading` is made of them. The rest is shared: `encoding` makes text of bytes and `document` strict JSON of text,
`values` makes the values of the graph from JSON, `states` a resource from the record that Pulumi keeps of it, and
`operations` one change from all the steps of a resource.
"""
