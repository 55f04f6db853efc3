#include "core/ops/random/random.h"

#include <gtest/gtest.h>

#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

constexpr int64_t kCounts[] = {1, 6, 259, 5000};

/// Expects `draw` to fill a tensor with the CPU's numbers, starting in the middle of the counter.
template <class Draw>
void expect_the_numbers_of_the_cpu(DType dtype, const Draw& draw) {
  for (const int64_t count : kCounts) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << count << " elements");
    const auto drawn = [&](Device device) {
      Generator generator(0x123456789abcdefULL);
      generator.set_position(1234567, 321);
      std::vector<Tensor> both;
      for (int call = 0; call < 2; ++call) {
        both.push_back(empty_tensor({count}, dtype, device));
        draw(both.back(), generator);
      }
      return both;
    };
    const std::vector<Tensor> got = drawn(kGpu), want = drawn(kCPU);
    for (size_t i = 0; i < 2; ++i) expect_equal_bits(got[i], want[i]);
  }
}

TEST(CudaRandom, UniformNumbersAreThoseOfTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    expect_the_numbers_of_the_cpu(
        dtype, [](const Tensor& t, Generator& generator) { uniform_(t, -0.3, 2.1, &generator); });
  }
}

TEST(CudaRandom, NormalNumbersAreThoseOfTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    expect_the_numbers_of_the_cpu(
        dtype, [](const Tensor& t, Generator& generator) { normal_(t, 0.7, 0.02, &generator); });
  }
}

TEST(CudaRandom, NormalNumbersOfF64AreThoseOfTheCpuButForTheirFunctions) {
  const auto drawn = [](Device device) {
    Generator generator(3);
    const Tensor t = empty_tensor({333}, DType::kF64, device);
    normal_(t, 0, 1, &generator);
    return t.to(kCPU);
  };
  expect_near(drawn(kGpu), drawn(kCPU), 1e-14, 1e-14);
}

TEST(CudaRandom, BitsAreThoseOfTheCpu) {
  for (const DType dtype : {DType::kBool, DType::kI64, DType::kF32, DType::kBF16}) {
    for (const double p : {0.0, 0.3, 1.0}) {
      expect_the_numbers_of_the_cpu(
          dtype, [p](const Tensor& t, Generator& generator) { bernoulli_(t, p, &generator); });
    }
  }
}

TEST(CudaRandom, IntegersAreThoseOfTheCpu) {
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8, DType::kF32}) {
    expect_the_numbers_of_the_cpu(
        dtype, [](const Tensor& t, Generator& generator) { random_(t, 3, 100, &generator); });
  }
  expect_the_numbers_of_the_cpu(DType::kI64, [](const Tensor& t, Generator& generator) {
    random_(t, -5, std::nullopt, &generator);
  });
}

TEST(CudaDropout, DropsWhatTheCpuDrops) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (const int64_t count : kCounts) {
      for (const double p : {0.0, 0.4, 1.0}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << count << ", p " << p);
        expect_same_bits({random_tensor({count}, dtype)}, [p](const std::vector<Tensor>& t) {
          manual_seed(11);
          const auto [dropped, mask] = native_dropout(t[0], p, true);
          return std::vector<Tensor>{dropped, mask, native_dropout_backward(t[0], mask, 1.7)};
        });
      }
    }
  }
}

TEST(CudaDropout, TakesTensorsAtAnyAddress) {
  expect_same_bits({random_tensor({103})}, [](const std::vector<Tensor>& t) {
    manual_seed(11);
    const auto [dropped, mask] = native_dropout(t[0].slice(0, 1), 0.5, true);
    return std::vector<Tensor>{dropped, mask};
  });
}

}  // namespace
}  // namespace lockstep
