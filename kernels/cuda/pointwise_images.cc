#include "kernels/cuda/pointwise_images.h"

#include <array>

// Each header defines a kImage.
namespace lockstep::cuda::activation {
#include "kernels/cuda/pointwise_activation.fatbin.h"
}
namespace lockstep::cuda::arithmetic {
#include "kernels/cuda/pointwise_arithmetic.fatbin.h"
}
namespace lockstep::cuda::compare {
#include "kernels/cuda/pointwise_compare.fatbin.h"
}
namespace lockstep::cuda::copy {
#include "kernels/cuda/pointwise_copy.fatbin.h"
}
namespace lockstep::cuda::division {
#include "kernels/cuda/pointwise_division.fatbin.h"
}
namespace lockstep::cuda::formula {
#include "kernels/cuda/pointwise_formula.fatbin.h"
}
namespace lockstep::cuda::logic {
#include "kernels/cuda/pointwise_logic.fatbin.h"
}
namespace lockstep::cuda::piecewise {
#include "kernels/cuda/pointwise_piecewise.fatbin.h"
}
namespace lockstep::cuda::round {
#include "kernels/cuda/pointwise_round.fatbin.h"
}
namespace lockstep::cuda::special {
#include "kernels/cuda/pointwise_special.fatbin.h"
}
namespace lockstep::cuda::unary {
#include "kernels/cuda/pointwise_unary.fatbin.h"
}

namespace lockstep::cuda {

std::span<const void* const> pointwise_images() {
  static constexpr std::array<const void*, 11> kImages = {
      activation::kImage, arithmetic::kImage, compare::kImage, copy::kImage,
      division::kImage,   formula::kImage,    logic::kImage,   piecewise::kImage,
      round::kImage,      special::kImage,    unary::kImage};
  return kImages;
}

}  // namespace lockstep::cuda
