"""Broken clients: faults that reports show, and mechanisms that take them into account."""

from unpoison.filters.client_faults.diagnosis import Diagnosis, diagnose
from unpoison.filters.client_faults.dropout import DROPOUT, find_dropout, whole_groups_fit
from unpoison.filters.client_faults.finding import ClientFault

__all__ = [
    "DROPOUT",
    "ClientFault",
    "Diagnosis",
    "diagnose",
    "find_dropout",
    "whole_groups_fit",
]
