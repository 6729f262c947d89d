"""Everything that knows Gymnasium: its spaces, its three ways to reset, its wrappers and its registry."""
