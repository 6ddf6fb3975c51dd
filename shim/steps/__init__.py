"""Steps of any framework: observed, counted, timed, and recorded if they are selected."""
