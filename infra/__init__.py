"""Everything around the service that is not deployed with it."""
