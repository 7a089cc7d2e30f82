# The server with SQLite in /data. It has no credentials of its own yet, so that it may listen beyond loopback must be
# said when it is started, and something that authenticates must stand in front of it:
#
#   docker build -t verbatim .
#   docker run -p 127.0.0.1:8000:8000 -v verbatim:/data -e VERBATIM_ALLOW_UNAUTHENTICATED=true verbatim
#
# The root file system may be read-only (`--read-only`). `docker run … verbatim migrate` migrates PostgreSQL.

FROM python:3.13.7-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/verbatim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY static static
RUN /opt/verbatim/bin/pip install . && /opt/verbatim/bin/python -m compileall -q /opt/verbatim/lib

FROM python:3.13.7-slim-bookworm
RUN groupadd --gid 10001 verbatim \
    && useradd --uid 10001 --gid verbatim --no-create-home --home-dir /data --shell /usr/sbin/nologin verbatim \
    && install -d -o verbatim -g verbatim -m 0750 /data
COPY --from=build /opt/verbatim /opt/verbatim
ENV PATH=/opt/verbatim/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    VERBATIM_HOST=0.0.0.0 \
    VERBATIM_PORT=8000 \
    VERBATIM_DATA_DIR=/data
USER verbatim
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"VERBATIM_PORT\"]}/healthz', timeout=2)"]
ENTRYPOINT ["verbatim"]
