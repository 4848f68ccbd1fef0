"""How fast sparkpub is. Speed lives here and never in a test."""
