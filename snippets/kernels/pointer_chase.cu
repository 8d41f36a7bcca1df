// One thread goes from address to address: each line of 128 bytes holds
// the address of the next one, so that no load can begin before the one
// before it has arrived. `landed` says whether it came where it should,
// `cycles` how many cycles of the SM's clock the way took.
extern "C" __global__ void
pointer_chase(const long long* chain, float* landed, long long* cycles,
              int touched, int start, int end, int loads) {
    const int line = 16;  // long longs
    // All threads bring the first lines into the L1 cache, which is empty
    // when a kernel begins. No address is 0, which no compiler can know.
    for (int i = threadIdx.x; i < touched; i += blockDim.x)
        if (chain[(long long)i * line] == 0) landed[0] = -1.0f;
    if (threadIdx.x > 0) return;
    const long long* at = chain + (long long)start * line;
    long long began = clock64();
    for (int i = 0; i < loads; ++i) at = (const long long*)*at;
    landed[0] = at == chain + (long long)end * line ? 1.0f : 0.0f;
    cycles[0] = clock64() - began;
}
