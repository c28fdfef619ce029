"""The live audit: what exists and how it is used, from Google's APIs or a recorded file, to verdicts, money, remedies.

Data flows one way: clients -> Record -> auditors -> Audit -> remedies and reports. Everything after the record is pure,
so a recorded week gives the same verdicts without a cloud.
"""
