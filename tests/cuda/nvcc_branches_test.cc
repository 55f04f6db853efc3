// The branches that only nvcc takes (`__CUDA_ARCH__`), which the emulated GPU does not run: their
// PTX, interpreted, beside the cpu's results and the errors that are documented for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "kernels/common/elementary.h"
#include "tests/cuda/ptx_program.h"

namespace lockstep::cuda {
namespace {

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class NvccBranches : public ::testing::Test {
 protected:
#ifdef LOCKSTEP_NVCC_BRANCHES
  NvccBranches() : program_(text_of(LOCKSTEP_NVCC_BRANCHES)) {}
#else
  NvccBranches() : program_("") { (void)&text_of; }
  void SetUp() override { GTEST_SKIP() << "the build has no nvcc"; }
#endif

  template <class Out, class In>
  Out run(const std::string& kernel, const In& in, int ulps = 0) const {
    Out out{};
    program_.run("branch_" + kernel, &in, &out, ulps);
    return out;
  }
  /// Largest error of a function of f32 over `inputs`, in units of the last place of the exact
  /// result, however far its approximate instructions are off within `ulps`.
  double error(const std::string& kernel, const std::vector<float>& inputs,
               const std::function<double(double)>& exact, int ulps) const {
    double most = 0;
    for (const float x : inputs) {
      const double want = exact(x);
      const auto near = std::fabs(static_cast<float>(want));
      const double unit = std::ldexp(1.0, std::max(std::ilogb(near), -126) - 23);
      for (const int off : {-ulps, 0, ulps}) {
        most = std::max(most, std::fabs(run<float>(kernel, x, off) - want) / unit);
      }
    }
    return most;
  }

  const PtxProgram program_;
};

/// Numbers of all magnitudes, and of [-limit, limit].
std::vector<float> numbers(float limit) {
  std::mt19937 engine(1);
  std::vector<float> all = {0.0F, -0.0F, 1.0F, -1.0F, limit, -limit};
  for (int i = 0; i < 20000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(engine()));
    if (std::fabs(x) <= limit) all.push_back(x);
    all.push_back(std::uniform_real_distribution<float>(-limit, limit)(engine));
  }
  return all;
}

/// Every value of the half, the middles between neighbours, and what is beside these.
std::vector<float> around_halves(float (*value)(uint16_t), int lost_bits) {
  std::vector<float> all;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto near = std::bit_cast<uint32_t>(value(static_cast<uint16_t>(bits)));
    const uint32_t middle = near + (1U << (lost_bits - 1));
    for (const uint32_t each : {near, middle - 1, middle, middle + 1}) {
      all.push_back(std::bit_cast<float>(each));
    }
  }
  return all;
}
float bf16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
float half_value(uint16_t bits) {
  Half half;
  half.bits = bits;
  return static_cast<float>(half);
}

TEST_F(NvccBranches, RoundToHalvesAsTheCpu) {
  for (const float x : around_halves(&bf16_value, 16)) {
    if (std::isnan(x)) continue;
    ASSERT_EQ(run<uint16_t>("float_to_bf16", x), BFloat16(x).bits) << x;
  }
  for (const float x : around_halves(&half_value, 13)) {
    if (std::isnan(x)) continue;
    ASSERT_EQ(run<uint16_t>("float_to_half", x), Half(x).bits) << x;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(bf16_value(run<uint16_t>("float_to_bf16", nan))));
  EXPECT_TRUE(std::isnan(half_value(run<uint16_t>("float_to_half", nan))));
}

TEST_F(NvccBranches, WidenHalvesAsTheCpu) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float want = half_value(static_cast<uint16_t>(bits));
    const auto got = run<float>("half_to_float", static_cast<uint16_t>(bits));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << bits;
    }
  }
}

TEST_F(NvccBranches, PairsKeepTheirOrder) {
  const std::vector<float> all = numbers(1e4F);
  for (size_t i = 0; i + 1 < all.size(); i += 97) {
    const std::array<float, 2> pair = {all[i], all[i + 1]};
    const auto as_bf16 = run<std::array<uint16_t, 2>>("pair_to_bf16", pair);
    const auto as_half = run<std::array<uint16_t, 2>>("pair_to_half", pair);
    for (size_t k = 0; k < 2; ++k) {
      ASSERT_EQ(as_bf16[k], BFloat16(pair[k]).bits) << pair[k];
      ASSERT_EQ(as_half[k], Half(pair[k]).bits) << pair[k];
    }
  }
}

/// What CUDA's documentation bounds: 2 for 2^x, 1 for 1 / x.
constexpr int kExp2Ulps = 2;
constexpr int kReciprocalUlps = 1;

TEST_F(NvccBranches, ExpIsExactToAFewUlp) {
  const auto error_of_exp = [&](int ulps) {
    return error(
        "exp", numbers(87.0F), [](double x) { return std::exp(x); }, ulps);
  };
  EXPECT_LT(error_of_exp(0), 1.2);
  EXPECT_LT(error_of_exp(kExp2Ulps), 1.2 + 1.2 * kExp2Ulps);
  const auto exp_at = [&](float x) { return run<float>("exp", x); };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_at(-infinity), 0);
  EXPECT_EQ(exp_at(-200.0F), 0);
  EXPECT_EQ(exp_at(infinity), infinity);
  EXPECT_EQ(exp_at(89.0F), infinity);
  EXPECT_TRUE(std::isnan(exp_at(std::numeric_limits<float>::quiet_NaN())));
}

TEST_F(NvccBranches, ExpOfHalvesIsWithinItsErrorOverAllOfThem) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const float x :
         {bf16_value(static_cast<uint16_t>(bits)), half_value(static_cast<uint16_t>(bits))}) {
      if (std::isnan(x) || x > 88) continue;
      const double want = std::exp(static_cast<double>(x));
      for (const int off : {-kExp2Ulps, 0, kExp2Ulps}) {
        const double got = run<float>("exp_of_bf16", x, off);
        // Below that the hardware gives 0.
        const double allowed =
            want < 0x1p-125 ? 0x1p-125 : want * (0x1p-21 + std::fabs(x) * 0x1p-23);
        ASSERT_LE(std::fabs(got - want), allowed) << x;
      }
    }
  }
}

TEST_F(NvccBranches, FunctionsOfReciprocalsAreExactToAFewUlp) {
  const auto reciprocals = [](const std::vector<float>& all) {
    std::vector<float> normal;
    std::ranges::copy_if(all, std::back_inserter(normal),
                         [](float x) { return std::isnormal(x) && std::isnormal(1.0F / x); });
    return normal;
  };
  EXPECT_LE(error(
                "reciprocal", reciprocals(numbers(1e30F)), [](double x) { return 1 / x; },
                kReciprocalUlps),
            1.5);
  EXPECT_LT(error(
                "tanh", numbers(20.0F), [](double x) { return std::tanh(x); }, 1),
            4);
  EXPECT_LT(error(
                "sigmoid", numbers(80.0F), [](double x) { return 1 / (1 + std::exp(-x)); }, 1),
            5);
  for (const float b : {0.5F, 3.0F, 1e10F, std::numeric_limits<float>::infinity()}) {
    const auto got = run<float>("quotient", std::array<float, 2>{7.0F, b});
    EXPECT_NEAR(got, 7.0F / b, 7.0F / b * 2e-7F) << b;
  }
  EXPECT_EQ(run<float>("tanh", 30.0F), 1);
  EXPECT_EQ(run<float>("tanh", -30.0F), -1);
}

TEST_F(NvccBranches, TailsOfTheNormalDistributionKeepTheirDigits) {
  for (const float x : numbers(12.0F)) {
    const double want = 0.5 * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    for (const int off : {-1, 0, 1}) {
      const auto got = run<NormalDistribution<float>>("normal", x, off);
      ASSERT_NEAR(got.below / want, 1, 1e-6) << x;
    }
  }
}

}  // namespace
}  // namespace lockstep::cuda
