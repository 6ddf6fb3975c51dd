"""Which steps are traced, and what that costs."""
