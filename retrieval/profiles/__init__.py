"""Named, versioned ranking parameters, the models they refer to, and the gate that a version must pass to go live."""
