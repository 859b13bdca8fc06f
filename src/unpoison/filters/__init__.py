"""Filters: the poison in a group's reports, and the honest histogram behind them.

`em` has the filters of the paper (EMF, EMF*, CEMF*, EMS), `joint` the filter over all groups at
once. Neither knows the other; what both need lies beside them.
"""
