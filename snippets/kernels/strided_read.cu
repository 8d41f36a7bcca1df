// Thread i reads element `first` + i * `stride` of `data`, then the one
// that all threads together are farther on, and so forth through
// `elements` of them: the 32 threads of a warp ask for 32 elements that
// lie `stride` apart. With `neighbours` = `stride` each thread also reads
// those between its element and the next thread's, one after the other.
// `rounds` repeats it all.
extern "C" __global__ void __launch_bounds__(512)
strided_read(const float* data, float* sums, int first, int stride,
             int neighbours, int elements, int rounds) {
    int threads = gridDim.x * blockDim.x;
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = (elements - thread + threads - 1) / threads;
    float sum = 0.0f;
    if (neighbours == 1) {  // so little arithmetic that loads decide
        const float* begin = data + first + (long long)thread * stride;
        long long step = (long long)threads * stride;
        for (int round = 0; round < rounds; ++round) {
            const float* at = begin;
#pragma unroll 8
            for (int left = mine; left > 0; --left, at += step) sum += *at;
        }
    } else {  // one loop, so that loads of several elements are under way
        int i = thread, next = 0;
#pragma unroll 8
        for (int left = mine * neighbours * rounds; left > 0; --left) {
            sum += data[first + (long long)i * stride + next];
            if (++next == neighbours) {
                next = 0;
                i = i + threads < elements ? i + threads : thread;
            }
        }
    }
    sums[thread] = sum;
}
