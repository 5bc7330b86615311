# One image for every process of Slicewise and for Spark; docker-compose.yml says which command runs where.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
    && ln -s "$(python -c 'import importlib.util as u; print(u.find_spec("pyspark").submodule_search_locations[0])')" /opt/spark

COPY . .
RUN pip install --no-cache-dir --no-deps -e . \
    && useradd --system --create-home --uid 10001 slicewise \
    && install -d -m 0711 /data \
    && install -d -o slicewise -g slicewise /lake /static

ENV SPARK_HOME=/opt/spark PYTHONUNBUFFERED=1 SLICEWISE_DATA=/data STATIC_FOLDER=/static LANG=C.UTF-8
USER slicewise
VOLUME ["/data", "/lake"]
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "granian", "--interface", "asginl", "slicewise_server.asgi:application"]
