"""Figures: a result becomes a small info, tested by value; the info becomes a Plotly spec."""
