"""Copy plotly.js from the installed package to a folder: python scripts/lay_plotly_js.py FOLDER.

The app does so itself where it may write beside app.py; a container lays it when it is built.
"""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from s11.figures.drawn import plotly_js

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    source, name = plotly_js()
    shutil.copyfile(source, folder / name)
