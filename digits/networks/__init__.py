"""Networks: Keras builders by name."""
