"""The yardstick of `ui.py`: a slider and one chart of the same bars and size, nothing else."""

import numpy as np
import streamlit as st

st.set_page_config(layout="wide")
st.html("<style>.block-container{max-width:1280px}</style>")  # the chart is as wide as ours

PROMPT_TOKENS, USERS, LEAD_IN, TAIL = 8192, 24, 2, 3
STOPS = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 2488, 3072, 4096, 6144, 8192]

chunk = st.select_slider("Chunk size (tokens)", STOPS, 1024, key="chunk", bind="query-params")
full, rest = divmod(PROMPT_TOKENS, chunk)
chunks = [chunk] * full + ([rest] if rest else [])
prefill = np.array([0] * LEAD_IN + chunks + [0] * TAIL) * 0.018
decode, fixed = np.full(len(prefill), USERS * 0.05), np.full(len(prefill), 4.0)
width = prefill + decode + fixed
left = np.cumsum(width) - width
st.plotly_chart(
    {
        "data": [
            {"type": "bar", "name": name, "x": left, "y": height, "width": width, "offset": 0}
            for name, height in (("prefill", prefill), ("decode", decode), ("fixed", fixed))
        ],
        "layout": {
            "barmode": "stack",
            "template": "none",
            "height": 590,
            "meta": {"step_count": len(width)},
        },
    },
    theme=None,
    height=590,
    key="timeline",
)
