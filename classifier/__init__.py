"""What is learned: intents, weights, features, training and inference."""
