"""What estimators for Spark share: where their data and models are kept, and what runs their trainings."""
