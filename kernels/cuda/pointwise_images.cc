#include "kernels/cuda/pointwise_images.h"

namespace lockstep::cuda {

// Of all kernels/pointwise/*.cu; written by cmake/Cuda.cmake.
namespace pointwise_modules {
#include "kernels/cuda/pointwise_image_list.h"
}

std::span<const void* const> pointwise_images() { return pointwise_modules::kImages; }

}  // namespace lockstep::cuda
