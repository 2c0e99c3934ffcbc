# An image with Horovod's Debian package: the programs, the Python package and numpy. Needs nothing but Debian's archive.
#
#   docker build -t horovod .
#   docker run --rm horovod horovodrun -np 2 python3 /usr/share/doc/horovod/examples/numpy_regression.py
#
# For a framework, build on it: FROM horovod, and install python3-torch, for example.
# Versions of packages are not pinned: within a Debian release they change only for security updates.

FROM debian:bookworm-slim AS build
# dpkg-dev has dpkg-shlibdeps. tools/deb installs what else the build needs.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates dpkg-dev \
 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN /source/tools/deb

FROM debian:bookworm-slim
COPY --from=build /source/dist/*.deb /tmp/
# openssh-client is for jobs on several hosts.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends /tmp/*.deb openssh-client python3-numpy \
 && rm -rf /var/lib/apt/lists/* /tmp/*.deb
COPY --from=build /source/examples /usr/share/doc/horovod/examples
CMD ["horovodrun", "--check-build"]
