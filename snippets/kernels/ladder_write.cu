// Every block writes its window of `out` again and again, 16 bytes a
// thread and store; windows are those of ladder_read.cu. Each round writes
// its own number, so that no store can be left out.
extern "C" __global__ void __launch_bounds__(1024, 1)
ladder_write(float4* out, int window_rows, int apart_rows, int rounds) {
    long long apart = (long long)apart_rows * blockDim.x;
    float4* window = out + blockIdx.x * apart + threadIdx.x;
    int first = (int)((long long)blockIdx.x * window_rows / gridDim.x);
    for (int round = 1; round <= rounds; ++round) {
        float4 v = make_float4(round, round, round, round);
        int row = first;
#pragma unroll 8
        for (int left = window_rows; left > 0; --left) {
            window[(long long)row * blockDim.x] = v;
            row = row + 1 == window_rows ? 0 : row + 1;
        }
    }
}
