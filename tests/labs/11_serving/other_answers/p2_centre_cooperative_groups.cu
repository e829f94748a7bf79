#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[1024];
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum += x[i];
        auto block = cg::this_thread_block();
        auto warp = cg::tiled_partition<32>(block);
        sum = cg::reduce(warp, sum, cg::plus<float>());
        if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = sum;
        block.sync();
        float all = warp.thread_rank() < warp.meta_group_size() ? sums[warp.thread_rank()] : 0.0f;
        float mean = cg::reduce(warp, all, cg::plus<float>()) / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
