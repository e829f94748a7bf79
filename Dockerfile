# The small set (labs 00 to 06, 10 and 13), without a GPU:
#     docker build -t warplab . && docker run --rm -it -p 127.0.0.1:8888:8888 warplab
# Build it where it is used. NVIDIA's licence (License.txt of nvidia-cuda-nvcc, Attachment A) lets others pass on NVRTC,
# libnvvm and libdevice; ptxas and nvdisasm, which estimates need, are not in its list.
FROM python:3.12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home learner
USER learner
# In this order: a builder before BuildKit makes a folder for WORKDIR that only root can write to.
COPY --chown=learner . /home/learner/warplab
WORKDIR /home/learner/warplab
# No cache of uv's is kept beside .venv.
RUN UV_CACHE_DIR=/tmp/uv make lab LAB_ARGS=--version && rm -rf /tmp/uv
EXPOSE 8888
CMD ["make", "lab", "LAB_ARGS=--no-browser --ip=0.0.0.0"]
