# A static binary on nothing: no shell, no package manager, run by user 65532. Needs BuildKit, which Docker has by itself
# since version 23, or Podman.
#
#   docker build -t ringback --build-arg VERSION="$(git describe --tags --always --dirty)" .
#   docker run -p 127.0.0.1:8080:8080 -e RINGBACK_TOKEN -v ringback:/data --stop-timeout 35 ringback
#
# The token is taken from the variable RINGBACK_TOKEN of your shell: everyone on a machine can read command lines.
#
# docker stop kills after 10 s unless --stop-timeout says otherwise, and a stop may take 30 s (RINGBACK_GRACE). A kill loses
# nothing, but what was in flight is sent again.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download
COPY . .
# Built on the machine's own platform for the one that is asked for. VERSION comes as late as it can: what stands above
# need not be built again for a new one.
ARG TARGETOS TARGETARCH
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/ringback ./cmd/ringback \
 && mkdir /out/data

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="ringback" \
      org.opencontainers.image.description="Sends HTTP callbacks: when they are due, and again until they arrive" \
      org.opencontainers.image.source="https://github.com/ringback/ringback" \
      org.opencontainers.image.version="$VERSION"
# Receivers are called over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ringback /ringback
COPY --from=build --chown=65532:65532 /out/data /data
# Variables and not flags: flags would win over what docker run -e says, and the health check would not see them.
ENV RINGBACK_ADDR=:8080 \
    RINGBACK_STORE=sqlite:/data/ringback.db
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# Ready means: takes and delivers jobs. For orchestrators that restart what is unhealthy, ["/ringback", "health", "--live"]
# is the better question: a restart does not bring a store back.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/ringback", "health"]
ENTRYPOINT ["/ringback"]
CMD ["serve"]
