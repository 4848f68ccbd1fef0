"""What runs in a reader's browser, and the policy it runs under."""
