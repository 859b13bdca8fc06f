"""Campaigns: enrolment, submissions, counts and status, as functions of one transaction.

Nothing here opens a connection or commits; the caller's transaction decides what is atomic.
"""
