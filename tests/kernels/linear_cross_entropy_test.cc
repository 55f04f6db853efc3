#include "core/ops/loss/linear_cross_entropy.h"

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr int64_t kIgnored = -100;

/// Class numbers below `classes`, one of them ignored.
Tensor class_numbers(int64_t rows, int64_t classes) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < rows; ++i) numbers.push_back((i * 7 + i / 3) % classes);
  if (rows > 2) numbers[1] = kIgnored;
  return tensor_from<int64_t>(numbers, {rows});
}

struct Rounding {
  DType dtype;
  double tolerance;
};
constexpr Rounding kRoundings[] = {
    {DType::kF32, 2e-6}, {DType::kF64, 1e-13}, {DType::kBF16, 1e-2}, {DType::kF16, 2e-3}};

TEST(LinearCrossEntropy, AgreesWithItsReferenceInEveryDType) {
  for (const auto [dtype, tolerance] : kRoundings) {
    for (const Reduction reduction : {Reduction::kMean, Reduction::kSum}) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", " << static_cast<int>(reduction));
      const Tensor x = leaf({70, 24}, 1, dtype), w = leaf({300, 24}, 2, dtype);
      const Tensor target = class_numbers(70, 300);
      const Tensor wide_x = x.detach().to(DType::kF64).set_requires_grad();
      const Tensor wide_w = w.detach().to(DType::kF64).set_requires_grad();
      const Tensor got = linear_cross_entropy(x, w, target, reduction);
      const Tensor wanted = linear_cross_entropy_reference(wide_x, wide_w, target, reduction);
      EXPECT_EQ(got.dtype(), promote(dtype, DType::kF32));
      expect_near(got, wanted, tolerance, tolerance);
      const Tensor seed = random_tensor({}, got.dtype(), 5);
      const std::vector<Tensor> gradients = grad({got}, {x, w}, {seed});
      const std::vector<Tensor> expected = grad({wanted}, {wide_x, wide_w}, {seed.to(DType::kF64)});
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(gradients[i].dtype(), dtype);
        expect_near(gradients[i], expected[i], 8 * tolerance, 8 * tolerance);
      }
    }
  }
}

TEST(LinearCrossEntropy, AnyChunksGiveTheSameSums) {
  for (const auto [dtype, tolerance] : kRoundings) {
    SCOPED_TRACE(name(dtype));
    const Tensor x = random_tensor({70, 24}, dtype), w = random_tensor({300, 24}, dtype, 2);
    const Tensor target = class_numbers(70, 300);
    const auto by = [&](int64_t chunk_rows) {
      return linear_cross_entropy_by_chunks(x, w, target, Reduction::kSum, kIgnored, chunk_rows,
                                            {true, true});
    };
    const auto [loss, of_input, of_weight] = by(70);
    for (const int64_t chunk_rows : {1, 32, 69, 1000}) {
      const auto [other_loss, other_input, other_weight] = by(chunk_rows);
      const double rounding = 2 * tolerance;
      expect_near(other_loss, loss, rounding, rounding);
      expect_near(other_input, of_input, rounding, rounding);
      expect_near(other_weight, of_weight, 4 * rounding, rounding);
    }
  }
}

TEST(LinearCrossEntropy, GradientsOfHalvesAreAddedInF32) {
  // Each chunk adds 2^-9 to an element near 1: bf16 would keep none of it.
  const int64_t rows = 65, classes = 2;
  std::vector<float> numbers(static_cast<size_t>(rows), 1.0F / 256);
  numbers[0] = 2;
  const Tensor x = tensor_from<float>(numbers, {rows, 1}).to(DType::kBF16);
  const Tensor w = zeros({classes, 1}, {DType::kBF16});
  const Tensor target = zeros({rows}, {DType::kI64});
  const auto [loss, of_input, of_weight] =
      linear_cross_entropy_by_chunks(x, w, target, Reduction::kSum, kIgnored, 1, {false, true});
  EXPECT_FALSE(of_input.defined());
  EXPECT_EQ(values(of_weight), (Numbers{-1.125, 1.125}));
}

TEST(LinearCrossEntropy, OfNoRowsHasNoGradient) {
  const Tensor x = zeros({0, 3}), w = random_tensor({4, 3});
  const auto [loss, of_input, of_weight] = linear_cross_entropy_by_chunks(
      x, w, class_numbers(0, 4), Reduction::kSum, kIgnored, 8, {true, true});
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(of_input.shape(), "[0, 3]");
  expect_near(of_weight, zeros({4, 3}), 0, 0);
}

TEST(LinearCrossEntropy, NeverStoresTheLogitsOfAllRows) {
  const int64_t rows = 1024, classes = 2048, width = 4;
  const Tensor x = leaf({rows, width}, 1, DType::kF32), w = leaf({classes, width}, 2, DType::kF32);
  const Tensor target = class_numbers(rows, classes);
  const auto peak_of = [](Device device, const auto& call) {
    Allocator& memory = allocator(device);
    memory.reset_peak();
    const int64_t before = memory.stats().allocated;
    call();
    return memory.stats().peak_allocated - before;
  };
  const auto run = [](const Tensor& input, const Tensor& weight, const Tensor& classes_of) {
    linear_cross_entropy_by_chunks(input, weight, classes_of, Reduction::kSum, kIgnored, 64,
                                   {true, true});
  };
  const int64_t peak = peak_of(kCPU, [&] { run(x.detach(), w.detach(), target); });
  const int64_t logits = rows * classes * 4;
  EXPECT_LT(peak, logits / 8);
  EXPECT_GE(peak, 64 * classes * 4) << "a chunk's logits count as memory";
  const Tensor shapes[] = {x.detach().to(kMeta), w.detach().to(kMeta), target.to(kMeta)};
  const int64_t planned = peak_of(kMeta, [&] { run(shapes[0], shapes[1], shapes[2]); });
  EXPECT_NEAR(static_cast<double>(planned), static_cast<double>(peak), 0.01 * peak);
}

TEST(LinearCrossEntropy, AChunkHasABoundedNumberOfLogits) {
  EXPECT_EQ(linear_cross_entropy_chunk(0, 50257, DeviceType::kCPU), 1);
  EXPECT_EQ(linear_cross_entropy_chunk(37, 50257, DeviceType::kCPU), 37);
  for (const int64_t classes : {1000, 50257, 128256}) {
    for (const int64_t rows : {1024, 4096, 65536}) {
      const auto check = [&](DeviceType device, int64_t logits, int64_t unit) {
        const int64_t chunk = linear_cross_entropy_chunk(rows, classes, device);
        EXPECT_LE(chunk, rows);
        EXPECT_LE((chunk - unit) * classes, std::max(logits, 512 * classes));
        EXPECT_TRUE(chunk == rows || chunk % unit == 0) << chunk;
      };
      check(DeviceType::kCPU, int64_t{1} << 26, 64);
      check(DeviceType::kCUDA, int64_t{1} << 28, 128);
    }
  }
}

TEST(LinearCrossEntropy, UnderAutocastMultipliesInItsDTypeAndAddsInF32) {
  const Tensor x = leaf({70, 24}, 1, DType::kF32), w = leaf({300, 24}, 2, DType::kF32);
  const Tensor target = class_numbers(70, 300);
  const AutocastGuard region(DeviceType::kCPU);
  const Tensor loss = linear_cross_entropy(x, w, target);
  const Tensor plain = cross_entropy_loss(linear(x, w), target);
  EXPECT_EQ(loss.dtype(), DType::kF32);
  EXPECT_EQ(plain.dtype(), DType::kF32);
  expect_near(loss, plain, 0, 1e-6);
  const std::vector<Tensor> got = grad({loss}, {x, w}), wanted = grad({plain}, {x, w});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].dtype(), DType::kF32);
    expect_near(got[i], wanted[i], 1e-3, 2e-2);
  }
}

TEST(LinearCrossEntropy, ComputesNoGradientsThatNobodyWants) {
  const Tensor x = leaf({8, 3}, 1, DType::kF32), w = random_tensor({5, 3}, DType::kF32, 2);
  const Tensor target = class_numbers(8, 5);
  const Tensor wanted = linear_cross_entropy_reference(x, w, target);
  expect_near(grad({linear_cross_entropy(x, w, target)}, {x})[0], grad({wanted}, {x})[0], 1e-6,
              1e-5);
  const NoGradGuard no_grad;
  EXPECT_FALSE(linear_cross_entropy(x, w, target).requires_grad());
}

TEST(LinearCrossEntropy, MistakesAreNamed) {
  const Tensor x = zeros({2, 3}), w = zeros({5, 3});
  const Tensor target = class_numbers(2, 5);
  expect_error<ShapeError>(
      [&] {
        linear_cross_entropy(x, zeros({5, 4}), target);
      },
      "[linear_cross_entropy]", "[2, 3]", "[5, 4]");
  expect_error<ShapeError>([&] { linear_cross_entropy(x, w, class_numbers(3, 5)); },
                           "a target for each row", "[3]");
  expect_error<DTypeError>([&] { linear_cross_entropy(x, w.to(DType::kF64), target); },
                           "float32 and float64");
  expect_error<DTypeError>([&] { linear_cross_entropy(x, w, zeros({2})); }, "class numbers",
                           "float32");
  expect_error<IndexError>([&] { linear_cross_entropy(x, w, full({2}, 5, {DType::kI64})); },
                           "[linear_cross_entropy]", "[0, 5)", "got 5");
  const auto by = [&](Reduction reduction, int64_t chunk_rows) {
    linear_cross_entropy_by_chunks(x, w, target, reduction, kIgnored, chunk_rows, {true, true});
  };
  expect_error<ShapeError>([&] { by(Reduction::kSum, 0); }, "at least one row in a chunk", "got 0");
  expect_error<ShapeError>([&] { by(Reduction::kNone, 2); }, "expected reduction 1 (mean) or 2");
}

}  // namespace
}  // namespace lockstep
