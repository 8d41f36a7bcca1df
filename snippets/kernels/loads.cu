// Sums the floats of `x`, each thread `count` of its block's: `LOADS` of them are asked for at a
// time, and all must have arrived before the next ones are asked for.
template <int LOADS>
__global__ void loads(const float* x, float* sums, int count) {
    const float* mine = x + (long long)blockIdx.x * blockDim.x * count + threadIdx.x;
    float sum = 0.0f, seen[LOADS];
#pragma unroll 1
    for (int i = 0; i < count; i += LOADS) {
#pragma unroll
        for (int k = 0; k < LOADS; ++k) seen[k] = mine[(i + k) * blockDim.x];
#pragma unroll
        for (int k = 0; k < LOADS; ++k) sum += seen[k];
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
