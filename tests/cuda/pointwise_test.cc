#include "kernels/cuda/pointwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/random/random.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "kernels/common/functors.h"
#include "kernels/cuda/divider.h"
#include "kernels/pointwise/arithmetic.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/gpu.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void expect_same_bits(const Tensor& there, const Tensor& here) {
  ASSERT_EQ(there.device(), kGpu);
  const Tensor back = there.to(kCPU).contiguous();
  const Tensor want = here.contiguous();
  ASSERT_EQ(back.dtype(), want.dtype());
  ASSERT_EQ(back.nbytes(), want.nbytes());
  EXPECT_EQ(std::memcmp(back.data(), want.data(), want.nbytes()), 0);
}

Tensor some(IntList sizes, DType dtype = DType::kF32) {
  return randn(sizes, {DType::kF32, kCPU}).to(dtype);
}

struct Nameless {
  float operator()(float x) const { return x; }
};

TEST(CudaPointwise, FunctorsWithoutANameAreNotAccepted) {
  EXPECT_TRUE(functors::Named<functors::Add>);
  EXPECT_TRUE((functors::Named<functors::WithNumber<functors::Add, float>>));
  EXPECT_FALSE(functors::Named<Nameless>);
}

TEST(CudaPointwise, AFunctorsNameHasNoLane) {
  EXPECT_EQ(functors::AddScaled<float>::kName.view(), "AddScaled");
  EXPECT_EQ((functors::WithNumber<functors::Add, int64_t>::kName.view()), "WithNumber_Add");
}

std::vector<std::string> repeated(std::span<const std::string> names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  std::vector<std::string> found;
  for (const auto& [name, count] : counts) {
    if (count > 1) found.push_back(name);
  }
  return found;
}

// The kernels of a functor are constructed once, so a name that is repeated is that of two
// functors.
TEST(CudaPointwise, NoTwoFunctorsHaveTheSameName) {
  std::vector<std::string> names;
  for (const Kernel kernel : Kernel::all()) {
    if (kernel.name().starts_with("pointwise_")) names.push_back(kernel.name());
  }
  EXPECT_GT(names.size(), 200U);
  EXPECT_THAT(repeated(names), IsEmpty());
  names.push_back("pointwise_Add_fff");
  EXPECT_THAT(repeated(names), ElementsAre("pointwise_Add_fff"));
}

TEST(CudaPointwise, DenseOperandsGiveTheCpusBits) {
  manual_seed(1);
  for (const int64_t n : {1, 3, 4, 7, 8, 1000, 70001}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
      const Tensor a = some({n}, dtype);
      const Tensor b = some({n}, dtype);
      expect_same_bits(add(a.to(kGpu), b.to(kGpu)), add(a, b));
      expect_same_bits(sqrt(abs(a.to(kGpu))), sqrt(abs(a)));
    }
  }
}

TEST(CudaPointwise, FloatsBesideHalvesGiveTheCpusBits) {
  manual_seed(3);
  for (const int64_t n : {1, 3, 4, 1000, 4096, 70001}) {
    for (const DType half : {DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(testing::Message() << n << " " << to_string(half));
      const Tensor a = some({n}), b = some({n}, half);
      const Tensor here = a.to(kGpu), there = b.to(kGpu);
      expect_same_bits(add(here, there), add(a, b));
      expect_same_bits(sub(there, here), sub(b, a));
      expect_same_bits(mul(here, there), mul(a, b));
      expect_same_bits(here.clone().add_(there), a.clone().add_(b));
      expect_same_bits(there.clone().add_(here), b.clone().add_(a));
      if (n < 8) continue;
      // Not aligned to packs, and with gaps.
      expect_same_bits(add(here.slice(0, 1), there.slice(0, 1)), add(a.slice(0, 1), b.slice(0, 1)));
      expect_same_bits(add(here.slice(0, 0, n, 2), there.slice(0, 0, n, 2)),
                       add(a.slice(0, 0, n, 2), b.slice(0, 0, n, 2)));
    }
  }
}

TEST(CudaPointwise, ViewsAndBroadcastOperandsGiveTheCpusBits) {
  manual_seed(2);
  const Tensor a = some({6, 5, 4});
  const Tensor b = some({5, 1});
  const Tensor there = a.to(kGpu);
  expect_same_bits(mul(there.transpose(0, 2), b.to(kGpu)), mul(a.transpose(0, 2), b));
  // A tensor that is not aligned to 16 bytes.
  const Tensor odd = some({1001});
  expect_same_bits(neg(odd.to(kGpu).slice(0, 1)), neg(odd.slice(0, 1)));
  expect_same_bits(add(there, there.select(0, 2)), add(a, a.select(0, 2)));
}

TEST(CudaPointwise, RowsOfPacksGiveTheCpusBits) {
  manual_seed(4);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(to_string(dtype));
    const Tensor a = some({6, 5, 32}, dtype), there = a.to(kGpu);
    for (const Tensor& b : {some({5, 32}, dtype), some({6, 1, 32}, dtype), some({5, 1}, dtype),
                            some({6, 1, 1}, dtype), some({1}, dtype), some({32}, dtype)}) {
      expect_same_bits(sub(there, b.to(kGpu)), sub(a, b));
      expect_same_bits(sub(there.transpose(0, 1), b.to(kGpu).expand({6, 5, 32}).transpose(0, 1)),
                       sub(a.transpose(0, 1), b.expand({6, 5, 32}).transpose(0, 1)));
    }
    expect_same_bits(mul(there.slice(2, 8, 24), there.slice(2, 16, 32)),
                     mul(a.slice(2, 8, 24), a.slice(2, 16, 32)));
    expect_same_bits(mul(there.slice(2, 1, 17), there.slice(2, 16, 32)),
                     mul(a.slice(2, 1, 17), a.slice(2, 16, 32)));
    const Tensor mask = gt(some({5, 32}), 0);
    expect_same_bits(where(mask.to(kGpu), there, there.select(0, 1)),
                     where(mask, a, a.select(0, 1)));
    expect_same_bits(gt(there, there.select(0, 1)), gt(a, a.select(0, 1)));
    // More dimensions than the vectorized kernel supports.
    const Tensor many = some({2, 2, 2, 2, 2, 2, 2, 2, 16}, dtype);
    const Tensor turned = many.permute({7, 6, 5, 4, 3, 2, 1, 0, 8});
    expect_same_bits(add(many.to(kGpu), turned.to(kGpu)), add(many, turned));
    expect_same_bits(add(many.to(kGpu), many.to(kGpu).permute({7, 6, 5, 4, 3, 2, 1, 0, 8})),
                     add(many, turned));
  }
}

TEST(CudaPointwise, MixedDtypesAreReadAsTheyAre) {
  const Tensor integers = arange(40).view({8, 5});
  const Tensor floats = some({5}, DType::kBF16);
  expect_same_bits(mul(integers.to(kGpu), floats.to(kGpu)), mul(integers, floats));
  expect_same_bits(gt(integers.to(kGpu), 7), gt(integers, 7));
  expect_same_bits(where(gt(integers, 7).to(kGpu), integers.to(kGpu), floats.to(kGpu)),
                   where(gt(integers, 7), integers, floats));
}

TEST(CudaPointwise, CopiesConvertAndTranspose) {
  manual_seed(3);
  const Tensor a = mul(some({33, 17}), 100);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kBool}) {
    SCOPED_TRACE(to_string(dtype));
    expect_same_bits(a.to(kGpu).to(dtype), a.to(dtype));
    expect_same_bits(a.to(dtype).to(kGpu).to(DType::kF32), a.to(dtype).to(DType::kF32));
    expect_same_bits(a.to(dtype).to(kGpu).t().contiguous(), a.to(dtype).t().contiguous());
  }
  expect_same_bits(full({3, 5}, 2.5, {DType::kBF16, kGpu}),
                   full({3, 5}, 2.5, {DType::kBF16, kCPU}));
}

TEST(CudaPointwise, AnIntegerDividedByZeroIsToldAtTheNextSynchronisation) {
  const Tensor a = arange(6).to(kGpu);
  const Tensor quotient = remainder(a, full({6}, 0, {DType::kI64, kGpu}));
  expect_error<Error>([] { synchronize(kGpu); }, "[remainder] integer division by zero", "cuda:0");
  EXPECT_NO_THROW(synchronize(kGpu));
  expect_same_bits(quotient, zeros({6}, {DType::kI64, kCPU}));
}

TEST(CudaDivider, DividesLikeTheProcessor) {
  for (const uint32_t d : {1U, 2U, 3U, 7U, 10U, 641U, 65536U, 65537U, 1U << 30, 0x7fffffffU}) {
    const Divider divider(d);
    for (const uint32_t n : {0U, 1U, d - 1, d, d + 1, 12345678U, 0x7ffffffeU, 0x7fffffffU}) {
      if (n > 0x7fffffffU) continue;
      EXPECT_EQ(divider.quotient(n), n / d) << n << " / " << d;
    }
  }
}

TEST(CudaLaunch, BlocksCoverTheWorkAndAreBounded) {
  EXPECT_EQ(blocks_for(0, 256), 1U);
  EXPECT_EQ(blocks_for(257, 256), 2U);
  EXPECT_EQ(blocks_for(int64_t{1} << 40, 256), 132U * 256U);
}

}  // namespace
}  // namespace lockstep::cuda
