# The server without a database, which docker-compose.yml adds. With TRIVET_DATABASE_URL=embedded
# it runs the embedded PostgreSQL in the volume /var/lib/trivet instead.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY hatch_build.py hatch_build.py
COPY models models
COPY native native
COPY postgres postgres
COPY graph graph
COPY classifier classifier
COPY retrieval retrieval
COPY trivet trivet
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements-image.lock /tmp/
RUN pip install --require-hashes -r /tmp/requirements-image.lock && rm /tmp/requirements-image.lock
COPY --from=build /wheel /wheel
RUN pip install --no-deps /wheel/*.whl && rm -r /wheel \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin trivet \
    && install -d -o trivet -g trivet /var/lib/trivet
USER trivet
WORKDIR /home/trivet
# A public address: the server refuses to start without TRIVET_API_KEY.
ENV TRIVET_HOST=0.0.0.0 TRIVET_PORT=8321 TRIVET_DATA_DIR=/var/lib/trivet
VOLUME /var/lib/trivet
EXPOSE 8321
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=5 CMD ["python", "-c", \
    "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"TRIVET_PORT\"]}/health/ready', timeout=2)"]
CMD ["trivet", "serve"]
