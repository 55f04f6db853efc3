#include "kernels/pointwise/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/tensor.h"

namespace lockstep {
namespace {

/// Every bfloat16 value, including NaNs.
Tensor all_bfloat16() {
  const Tensor all = empty_tensor({65536}, DType::kBF16);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    all.data<BFloat16>()[bits].bits = static_cast<uint16_t>(bits);
  }
  return all;
}

/// Error in units of the last bfloat16 place at `exact`.
double distance(float got, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(got) - exact) / std::ldexp(1.0, std::max(exponent - 8, -133));
}

TEST(Activation, GeluOfEveryBFloat16IsAsGoodAsRounded) {
  const Tensor x = all_bfloat16();
  const Tensor y = gelu(x, "none");
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float from = x.data<BFloat16>()[i], got = y.data<BFloat16>()[i];
    const double exact = 0.5 * from * std::erfc(-0.70710678118654752440 * from);
    if (std::isnan(exact) || std::isinf(exact)) {
      EXPECT_TRUE(std::isnan(exact) ? std::isnan(got) : got == exact) << from;
      continue;
    }
    EXPECT_LE(distance(got, exact), 0.5 + 1.0 / 32) << from << " gives " << got;
  }
}

TEST(Activation, GeluForBFloat16IsCloseBeforeItIsRounded) {
  double worst = 0;
  for (float x = -12.8F; x < 12.8F; x += 0x1p-10F) {
    const double exact = 0.5 * x * std::erfc(-0.70710678118654752440 * x);
    if (exact == 0) continue;
    worst = std::max(worst, std::abs((functors::GeluBF16()(x) - exact) / exact));
  }
  EXPECT_LT(worst, 1e-4);
}

}  // namespace
}  // namespace lockstep
