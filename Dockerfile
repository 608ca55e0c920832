# docker build -t s11 . && docker run --rm -p 8501:8501 s11
FROM python:3.12-slim

WORKDIR /app
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin s11

COPY requirements.txt ./
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt

COPY app.py ./
COPY .streamlit .streamlit
COPY assets assets
COPY pages pages
COPY s11 s11
COPY scripts/lay_plotly_js.py scripts/
# Nothing is written later: the app also runs with `docker run --read-only --tmpfs /tmp`.
RUN python scripts/lay_plotly_js.py static && python -m compileall -q app.py pages s11

USER s11
ENV HOME=/tmp PYTHONUNBUFFERED=1
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["python", "-m", "streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501", \
     "--server.headless=true", "--server.fileWatcherType=none"]
