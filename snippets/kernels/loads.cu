// Sums the floats of `x`, each thread `count` of its block's. `LOADS` of them
// are asked for at a time; all must be there before the next are asked for.
template <int LOADS>
__global__ void loads(const float* x, float* sums, int count) {
    const int THREADS = 256;  // of a block: a constant takes no registers
    const float* mine = x + (long long)blockIdx.x * THREADS * count;
    mine += threadIdx.x;
    float sum = 0.0f, seen[LOADS];
#pragma unroll 1
    for (int i = 0; i < count; i += LOADS) {
        for (int k = 0; k < LOADS; ++k) seen[k] = mine[k * THREADS];
        for (int k = 0; k < LOADS; ++k) sum += seen[k];
        mine += LOADS * THREADS;
    }
    sums[blockIdx.x * THREADS + threadIdx.x] = sum;
}
