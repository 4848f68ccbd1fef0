"""What a run is: records, campaigns, evidence, metrics, and what is known of models and machines."""
