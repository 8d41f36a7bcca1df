// The same work for every block, however many there are: each thread
// multiplies and adds `steps` times, and each result needs the one before.
__global__ void multiply_adds(float* out, int steps, double factor,
                              double term) {
    float x = threadIdx.x;
    float a = factor, b = term;  // both are 1; the compiler can't know
    for (int step = 0; step < steps; ++step) x = a * x + b;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;  // memory, only once
}
