# A static binary on an empty image: no shell, no package manager, user 65532. Needs BuildKit (Docker 23 or newer), or Podman.
#
#   docker build -t ringback --build-arg VERSION="$(git describe --tags --always --dirty)" .
#   docker run -p 127.0.0.1:8080:8080 -e RINGBACK_TOKEN -v ringback:/data --stop-timeout 35 ringback
#
# -e RINGBACK_TOKEN passes the variable of your shell, because everybody on a machine can read command lines.
#
# docker stop kills after 10 s by default, while a stop may take 30 s (RINGBACK_GRACE). A kill loses nothing, but attempts in
# flight are sent again.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download
COPY . .
# Cross-compiled on the build platform. VERSION is declared late, so that a new version does not invalidate the layers above.
ARG TARGETOS TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -tags validator_novalidatefn -ldflags "-s -w -X main.version=$VERSION" -o /out/ringback ./cmd/ringback \
 && mkdir /out/data

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="ringback" \
      org.opencontainers.image.description="Sends HTTP callbacks when they are due, and retries them until they arrive" \
      org.opencontainers.image.source="https://github.com/ringback/ringback" \
      org.opencontainers.image.version="$VERSION"
# Certificate authorities, for receivers over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ringback /ringback
COPY --from=build --chown=65532:65532 /out/data /data
# Variables, not flags: flags would override docker run -e, and the health check would not see them.
ENV RINGBACK_ADDR=:8080 \
    RINGBACK_STORE=sqlite:/data/ringback.db
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# Ready: accepts and delivers jobs. For orchestrators that restart unhealthy containers use ["/ringback", "health", "--live"]: a
# restart does not bring a store back.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/ringback", "health"]
ENTRYPOINT ["/ringback"]
CMD ["serve"]
