# One agent in a container: its data in the volume /data, no port to the outside. How clients reach it: docs/server.md
FROM python:3.13-slim AS build
COPY . /src
RUN pip install --no-cache-dir --prefix=/install /src

FROM python:3.13-slim
# What libsimplex is linked with. For previews of videos add ffmpeg.
RUN apt-get update && apt-get install -y --no-install-recommends libgmp10 && rm -rf /var/lib/apt/lists/*
COPY --from=build /install /usr/local
# The library is fetched now, so that no start needs github.com.
ENV XDG_CACHE_HOME=/opt/cache
RUN python -m simplex_chat install && chmod -R a+rX /opt/cache
RUN useradd --uid 10001 --create-home agent && install -d -o agent -g agent -m 700 /data
ENV XDG_DATA_HOME=/data PYTHONUNBUFFERED=1
USER agent
VOLUME /data
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=1m --timeout=10s --start-period=2m CMD ["simplexmcp", "status"]
ENTRYPOINT ["simplexmcp"]
CMD ["serve", "my-agent"]
