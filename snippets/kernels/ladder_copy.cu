// Every block copies its window of `data` to the same place of `out`,
// again and again, 16 bytes a thread and load; windows are those of
// ladder_read.cu.
extern "C" __global__ void __launch_bounds__(1024, 1)
ladder_copy(const float4* __restrict__ data, float4* __restrict__ out,
            int window_rows, int apart_rows, int rounds) {
    long long apart = (long long)apart_rows * blockDim.x;
    long long begin = blockIdx.x * apart + threadIdx.x;
    int row = (int)((long long)blockIdx.x * window_rows / gridDim.x);
#pragma unroll 8
    for (int left = window_rows * rounds; left > 0; --left) {
        long long at = begin + (long long)row * blockDim.x;
        out[at] = data[at];
        row = row + 1 == window_rows ? 0 : row + 1;
    }
}
