// Reads four numbers, does `fmas` multiply-adds on each, writes them back:
// the bytes stay as they are, and the arithmetic grows.
__device__ __forceinline__ void step(float4& v) {
    // Four chains that don't wait for each other.
    v.x = fmaf(v.x, -0.9990234375f, 0.5f);
    v.y = fmaf(v.y, -0.9990234375f, 0.5f);
    v.z = fmaf(v.z, -0.9990234375f, 0.5f);
    v.w = fmaf(v.w, -0.9990234375f, 0.5f);
}

__global__ void fma_chain(const float4* x, float4* y, int count, int fmas) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 v = x[i];
    // Unrolled: a loop around each step would spend as much on counting.
    for (; fmas >= 64; fmas -= 64) {
#pragma unroll
        for (int k = 0; k < 64; ++k) step(v);
    }
    for (; fmas >= 16; fmas -= 16) {
#pragma unroll
        for (int k = 0; k < 16; ++k) step(v);
    }
    for (; fmas > 0; --fmas) step(v);
    y[i] = v;
}
