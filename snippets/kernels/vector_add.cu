// Adds two vectors of `count` floats, one element a thread.
__global__ void vector_add(const float* a, const float* b, float* sum,
                           int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // this thread's own
    if (i < count) sum[i] = a[i] + b[i];  // the last may reach beyond
}
