// Read four numbers, do `fmas` multiply-adds on each, write them back: the bytes stay as they
// are, and the arithmetic grows.
__device__ __forceinline__ void step(float4& v) {
    // Four chains that do not wait for each other. Numbers neither grow nor settle down.
    v.x = fmaf(v.x, -0.9990234375f, 0.5f);
    v.y = fmaf(v.y, -0.9990234375f, 0.5f);
    v.z = fmaf(v.z, -0.9990234375f, 0.5f);
    v.w = fmaf(v.w, -0.9990234375f, 0.5f);
}

__global__ void fma_chain(const float4* x, float4* y, int count, int fmas) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 v = x[i];
    // Written out 64 times: a loop around each step would spend as many instructions on counting.
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
