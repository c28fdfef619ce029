"""What a stack costs: from resources, usage and a price book to lines of a bill.

`engine.estimate` is the way in and `model` the words of the answer. `priced/` has one file for each priced thing and
`free_types.csv` a row for each free one; a type in neither is unpriced, never free. Every line is made by
`market.Market.line`, the one place that meets the price book. The other modules are what several priced things share:
where a resource is, on what terms it runs, what its disks and hosts come to.

Amounts are exact; quantities are in the pricing unit of the book (GiB and MiB/s are binary), a month has 730 hours.
What cannot be priced is an `Unpriced`, what cannot be seen an `UnknownInput`, each with its reason; neither is ever 0.
"""
