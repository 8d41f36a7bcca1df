"""The ledger of inherited numbers on a page: table and chart."""
