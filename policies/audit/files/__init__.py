"""The file form of a record, `spotrail.record/1`, read and written without ever being held as text."""
