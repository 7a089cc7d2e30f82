"""The models an agent can speak with."""
