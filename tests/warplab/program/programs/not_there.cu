// Refused: graphs are not in Warp Lab's runtime.
int main() {
  cudaGraph_t graph;
  return cudaGraphCreate(&graph, 0);
}
