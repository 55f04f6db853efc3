#include "kernels/cuda/pointwise_images.h"

#include <array>

// Every header defines a `kImage`, so each is included in its own namespace.
namespace lockstep::cuda::activation {
#include "kernels/pointwise/activation.fatbin.h"
}
namespace lockstep::cuda::arithmetic {
#include "kernels/pointwise/arithmetic.fatbin.h"
}
namespace lockstep::cuda::compare {
#include "kernels/pointwise/compare.fatbin.h"
}
namespace lockstep::cuda::copy {
#include "kernels/pointwise/copy.fatbin.h"
}
namespace lockstep::cuda::division {
#include "kernels/pointwise/division.fatbin.h"
}
namespace lockstep::cuda::formula {
#include "kernels/pointwise/formula.fatbin.h"
}
namespace lockstep::cuda::logic {
#include "kernels/pointwise/logic.fatbin.h"
}
namespace lockstep::cuda::mixed {
#include "kernels/pointwise/mixed.fatbin.h"
}
namespace lockstep::cuda::piecewise {
#include "kernels/pointwise/piecewise.fatbin.h"
}
namespace lockstep::cuda::round {
#include "kernels/pointwise/round.fatbin.h"
}
namespace lockstep::cuda::special {
#include "kernels/pointwise/special.fatbin.h"
}
namespace lockstep::cuda::unary {
#include "kernels/pointwise/unary.fatbin.h"
}

namespace lockstep::cuda {

std::span<const void* const> pointwise_images() {
  static constexpr std::array<const void*, 12> kImages = {
      activation::kImage, arithmetic::kImage, compare::kImage, copy::kImage,
      division::kImage,   formula::kImage,    logic::kImage,   mixed::kImage,
      piecewise::kImage,  round::kImage,      special::kImage, unary::kImage};
  return kImages;
}

}  // namespace lockstep::cuda
