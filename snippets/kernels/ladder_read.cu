// Every block reads its window of `data` again and again, 16 bytes a
// thread and load. A window has `window_rows` rows, of one vector for each
// thread of the block, and begins `apart_rows` after the window of the
// block before: 0 gives all blocks the same one. Each thread sums what it
// read, or the compiler would leave the loads out.
extern "C" __global__ void __launch_bounds__(1024, 1)
ladder_read(const float4* data, float* sums, int window_rows,
            int apart_rows, int rounds) {
    long long apart = (long long)apart_rows * blockDim.x;
    const float4* window = data + blockIdx.x * apart + threadIdx.x;
    // Blocks that share a window begin apart, as they would after a while.
    int row = (int)((long long)blockIdx.x * window_rows / gridDim.x);
    float sum = 0.0f;
#pragma unroll 8
    for (int left = window_rows * rounds; left > 0; --left) {
        float4 v = window[(long long)row * blockDim.x];
        sum += (v.x + v.y) + (v.z + v.w);
        row = row + 1 == window_rows ? 0 : row + 1;
    }
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
