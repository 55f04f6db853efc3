#include "dist/collectives/reduction.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/expect_error.h"
#include "tests/dist/collectives/naive_reduction.h"

namespace lockstep::dist {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kPremultipliedSum};

bool has_meaning(DType dtype, ReduceOp op) {
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) return true;
  return op == ReduceOp::kPremultipliedSum ? is_floating(dtype) : dtype != DType::kBool;
}

std::vector<const void*> addresses(const std::vector<Bytes>& buffers) {
  std::vector<const void*> result;
  for (const Bytes& buffer : buffers) result.push_back(buffer.data());
  return result;
}

Bytes reduced(DType dtype, const Reduction& reduction, const std::vector<Bytes>& sources) {
  Bytes result(sources[0].size());
  reduce(dtype, reduction, addresses(sources), result.data(),
         static_cast<int64_t>(result.size() / size_of(dtype)));
  return result;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Random bits, including infinities, NaNs and subnormal numbers; booleans are 0 or 1.
std::vector<Bytes> random_sources(DType dtype, size_t sources, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Bytes> result;
  for (size_t k = 0; k < sources; ++k) {
    Bytes& bytes = result.emplace_back(static_cast<size_t>(count) * size_of(dtype));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(dtype == DType::kBool ? random() % 2 : random());
    }
  }
  return result;
}

/// Replaces all NaNs by one pattern: which of several NaNs a reduction returns is unspecified.
Bytes with_one_nan(DType dtype, Bytes bytes) {
  with_element_type(dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
        T element;
        std::memcpy(&element, bytes.data() + at, sizeof(T));
        if (std::isnan(static_cast<Computed<T>>(element))) {
          std::memset(bytes.data() + at, 0xff, sizeof(T));
        }
      }
    }
  });
  return bytes;
}

class ReductionTest : public testing::TestWithParam<DType> {};

TEST_P(ReductionTest, EveryOpAgreesWithALoopOverElements) {
  const DType dtype = GetParam();
  for (const ReduceOp op : kOps) {
    if (!has_meaning(dtype, op)) continue;
    const Reduction reduction{op, 0.375};
    for (const size_t sources : {1, 2, 3, 5, 8}) {
      for (const int64_t count : {0, 1, 7, 16, 31, 64, 129, 517}) {
        const auto data = random_sources(dtype, sources, count, static_cast<uint32_t>(count));
        EXPECT_EQ(with_one_nan(dtype, reduced(dtype, reduction, data)),
                  with_one_nan(dtype, naive_reduction(dtype, reduction, addresses(data), count)))
            << to_string(reduction) << " of " << sources << " sources of " << count;
      }
    }
  }
}

TEST_P(ReductionTest, TheResultMayLieInAnyOfTheSources) {
  const DType dtype = GetParam();
  for (const ReduceOp op : kOps) {
    if (!has_meaning(dtype, op)) continue;
    const Reduction reduction{op, 3};
    const auto data = random_sources(dtype, 4, 333, 7);
    const Bytes expected = reduced(dtype, reduction, data);
    for (size_t k = 0; k < data.size(); ++k) {
      auto sources = data;
      reduce(dtype, reduction, addresses(sources), sources[k].data(), 333);
      EXPECT_EQ(sources[k], expected);
      sources[k] = data[k];
      EXPECT_EQ(sources, data) << "another source was written";
    }
  }
}

TEST_P(ReductionTest, AnElementsBitsDoNotDependOnItsNeighboursOrItsAddress) {
  const DType dtype = GetParam();
  const size_t size = size_of(dtype);
  for (const ReduceOp op : kOps) {
    if (!has_meaning(dtype, op)) continue;
    const Reduction reduction{op, 0.1};
    const auto data = random_sources(dtype, 3, 200, 11);
    const Bytes whole = reduced(dtype, reduction, data);
    for (const auto& [begin, end] : {std::pair{1, 2}, {3, 70}, {64, 200}, {5, 133}}) {
      std::vector<const void*> sources;
      for (const Bytes& source : data) sources.push_back(source.data() + begin * size);
      Bytes part((end - begin) * size + 1);
      reduce(dtype, reduction, sources, part.data() + 1, end - begin);
      part.erase(part.begin());
      EXPECT_EQ(part, Bytes(whole.begin() + begin * size, whole.begin() + end * size));
    }
  }
}

TEST_P(ReductionTest, NothingBehindTheLastElementIsWritten) {
  const DType dtype = GetParam();
  const auto data = random_sources(dtype, 2, 37, 3);
  Bytes out(40 * size_of(dtype), std::byte{0x5a});
  reduce(dtype, {ReduceOp::kMax}, addresses(data), out.data(), 37);
  for (size_t at = 37 * size_of(dtype); at < out.size(); ++at) EXPECT_EQ(out[at], std::byte{0x5a});
}

INSTANTIATE_TEST_SUITE_P(DTypes, ReductionTest,
                         testing::Values(DType::kBool, DType::kU8, DType::kI8, DType::kI16,
                                         DType::kI32, DType::kI64, DType::kF16, DType::kBF16,
                                         DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(ReductionTest, SourcesAreTakenInOrder) {
  const float big = 1e8f;
  const auto sum = [](std::vector<float> values) {
    std::vector<Bytes> sources;
    for (const float value : values) sources.push_back(bytes_of<float>({value}));
    return values_of<float>(reduced(DType::kF32, {}, sources))[0];
  };
  EXPECT_EQ(sum({big, 1, -big}), 0);
  EXPECT_EQ(sum({big, -big, 1}), 1);
}

TEST(ReductionTest, SixteenBitsAreRoundedOnce) {
  // The spacing of bf16 numbers is 2 between 256 and 512, that of f16 between 2048 and 4096.
  const auto sum = [](DType dtype, auto first) {
    using T = decltype(first);
    const std::vector<Bytes> sources = {bytes_of<T>({first}), bytes_of<T>({T(1.0f)}),
                                        bytes_of<T>({T(1.0f)})};
    return static_cast<float>(values_of<T>(reduced(dtype, {}, sources))[0]);
  };
  EXPECT_EQ(sum(DType::kBF16, BFloat16(256.0f)), 258);
  EXPECT_EQ(sum(DType::kF16, Half(2048.0f)), 2050);
}

TEST(ReductionTest, ANaNAnywhereIsTheMinimumAndTheMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t place = 0; place < 3; ++place) {
    std::array<float, 3> values = {1, -2, 3};
    values[place] = nan;
    std::vector<Bytes> wide, narrow;
    for (const float value : values) {
      wide.push_back(bytes_of(std::vector<float>(100, value)));
      narrow.push_back(bytes_of(std::vector<BFloat16>(100, BFloat16(value))));
    }
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      for (const float x : values_of<float>(reduced(DType::kF32, {op}, wide))) {
        EXPECT_TRUE(std::isnan(x));
      }
      for (const BFloat16 x : values_of<BFloat16>(reduced(DType::kBF16, {op}, narrow))) {
        EXPECT_TRUE(std::isnan(static_cast<float>(x)));
      }
    }
  }
}

TEST(ReductionTest, OfZerosOfBothSignsTheFirstIsTheMinimumAndTheMaximum) {
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    for (const float first : {0.0F, -0.0F}) {
      const std::vector<Bytes> wide = {bytes_of(std::vector<float>(100, first)),
                                       bytes_of(std::vector<float>(100, -first))};
      for (const float x : values_of<float>(reduced(DType::kF32, {op}, wide))) {
        EXPECT_EQ(std::signbit(x), std::signbit(first));
      }
    }
  }
}

TEST(ReductionTest, IntegersWrap) {
  const std::vector<Bytes> sources(2, bytes_of<int32_t>({std::numeric_limits<int32_t>::max()}));
  EXPECT_EQ(values_of<int32_t>(reduced(DType::kI32, {}, sources))[0], -2);
  EXPECT_EQ(values_of<int32_t>(reduced(DType::kI32, {ReduceOp::kProduct}, sources))[0], 1);
}

TEST(ReductionTest, EveryValueIsMultipliedBeforeItEntersTheSum) {
  // Without the factor, the sum would overflow to infinity.
  const float most = std::numeric_limits<float>::max();
  const std::vector<Bytes> sources(2, bytes_of<float>({most}));
  const Bytes result = reduced(DType::kF32, {ReduceOp::kPremultipliedSum, 0.5}, sources);
  EXPECT_EQ(values_of<float>(result)[0], most);
}

TEST(ReductionTest, ReductionsWithoutMeaningAreRefused) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (const ReduceOp op : kOps) {
      const DType dtype = static_cast<DType>(i);
      const auto check = [&] { check_reduction("all_reduce", dtype, {op, 0.25}); };
      if (has_meaning(dtype, op)) {
        EXPECT_NO_THROW(check());
      } else {
        expect_error<DTypeError>(check, "[all_reduce]", to_string(Reduction{op, 0.25}));
      }
    }
  }
  expect_error<DTypeError>([] { check_reduction("reduce", DType::kBool, {}); },
                           "[reduce] booleans have no sum: expected min (all) or max (any).");
}

TEST(ReductionTest, IsNamedForPeople) {
  EXPECT_EQ(to_string(Reduction{}), "sum");
  EXPECT_EQ(to_string(Reduction{ReduceOp::kProduct}), "product");
  EXPECT_EQ(to_string(Reduction{ReduceOp::kMin}), "min");
  EXPECT_EQ(to_string(Reduction{ReduceOp::kMax}), "max");
  EXPECT_EQ(to_string(Reduction{ReduceOp::kPremultipliedSum, 0.25}), "premultiplied sum by 0.25");
}

}  // namespace
}  // namespace lockstep::dist
