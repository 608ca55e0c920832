"""Controls, cached runs and panels: with app.py and pages/, the only users of Streamlit."""
