// Does nothing: what it costs is its launch.
__global__ void empty() {}
