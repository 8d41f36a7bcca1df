// Each thread keeps 32 numbers and moves each half of the way to the next one, round after round.
//
// With `variable` 0 the compiler knows every index, so each number has a register of its own. With 1
// the index depends on `shift`, which is only known when the kernel runs. No instruction can name a
// register by a number that it computes: the same 32 numbers then lie in memory.
template <int variable>
__global__ void kept(const float* x, float* out, int rounds, int shift) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float mine[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) mine[k] = x[k * threads + thread];
#pragma unroll 1
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int k = 0; k < 32; ++k) {
            const int at = variable ? (k + shift) & 31 : k;
            mine[at] = 0.5f * (mine[at] + mine[(at + 1) & 31]);
        }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += mine[k];
    out[thread] = sum;
}
