#include "core/ops/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {
namespace {

/// Parameters of several sizes, some split between threads, with their optimizer states.
struct Parameters {
  std::vector<Tensor> values, grads, first, second;

  explicit Parameters(DType dtype = DType::kF32) {
    Generator generator(3);
    for (const Dims& sizes : {Dims{}, Dims{5}, Dims{200, 170}, Dims{0}, Dims{3, 7}}) {
      values.push_back(randn(sizes, dtype, &generator));
      grads.push_back(randn(sizes, dtype, &generator));
      first.push_back(zeros(sizes, dtype));
      second.push_back(zeros(sizes, dtype));
    }
  }
};

template <class T>
T element(const Tensor& tensor, int64_t i) {
  return tensor.data<T>()[i];
}

Tensor step_number(int64_t step) { return full({}, step, DType::kF64); }

struct Options {
  double lr = 0.01, beta1 = 0.9, beta2 = 0.95, decay = 0.1, eps = 1e-8, factor = 0.7;
};

TEST(FusedAdamW, FollowsThePaperOverSeveralSteps) {
  const Options o;
  Parameters p(DType::kF64);
  const Parameters start(DType::kF64);
  const Dims decayed{0, 0, 1, 1, 1};
  for (int64_t step = 1; step <= 3; ++step) {
    _fused_adamw_(p.values, p.grads, p.first, p.second, o.lr, o.beta1, o.beta2, o.decay, o.eps,
                  step_number(step), o.factor, decayed);
  }
  for (size_t t = 0; t < p.values.size(); ++t) {
    for (int64_t i = 0; i < p.values[t].numel(); ++i) {
      double value = element<double>(start.values[t], i);
      const double g = o.factor * element<double>(start.grads[t], i);
      double m = 0;
      double v = 0;
      for (int step = 1; step <= 3; ++step) {
        if (decayed[t] != 0) value *= 1 - o.lr * o.decay;
        m = o.beta1 * m + (1 - o.beta1) * g;
        v = o.beta2 * v + (1 - o.beta2) * g * g;
        const double m_hat = m / (1 - std::pow(o.beta1, step));
        const double v_hat = v / (1 - std::pow(o.beta2, step));
        value -= o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
      }
      ASSERT_NEAR(element<double>(p.values[t], i), value, 1e-14);
    }
  }
  EXPECT_TRUE(equal(p.grads[2], start.grads[2]));
}

TEST(FusedAdamW, SingleAgreesWithDouble) {
  const Options o;
  Parameters single;
  Parameters wide;
  for (auto* list : {&wide.values, &wide.grads, &wide.first, &wide.second}) {
    for (Tensor& tensor : *list) tensor = tensor.to(DType::kF64);
  }
  for (int64_t step = 1; step <= 3; ++step) {
    for (Parameters* p : {&single, &wide}) {
      _fused_adamw_(p->values, p->grads, p->first, p->second, o.lr, o.beta1, o.beta2, o.decay,
                    o.eps, step_number(step));
    }
  }
  for (int64_t i = 0; i < single.values[2].numel(); ++i) {
    ASSERT_NEAR(element<float>(single.values[2], i), element<double>(wide.values[2], i), 2e-6);
  }
}

TEST(FusedSgd, FollowsTheFormulas) {
  for (bool nesterov : {false, true}) {
    for (double momentum : {0.0, 0.9}) {
      const Options o;
      Parameters p(DType::kF64);
      const Parameters start(DType::kF64);
      for (int step = 0; step < 3; ++step) {
        _fused_sgd_(p.values, p.grads, p.first, o.lr, momentum, nesterov, o.decay, o.factor);
      }
      for (int64_t i = 0; i < p.values[2].numel(); ++i) {
        double value = element<double>(start.values[2], i);
        double buffer = 0;
        for (int step = 0; step < 3; ++step) {
          const double g = o.factor * element<double>(start.grads[2], i) + o.decay * value;
          buffer = momentum * buffer + g;
          value -= o.lr * (nesterov ? g + momentum * buffer : buffer);
        }
        ASSERT_NEAR(element<double>(p.values[2], i), value, 1e-14);
      }
    }
  }
}

TEST(FusedLion, FollowsThePaperOver50Steps) {
  const Options o;
  Parameters p(DType::kF64);
  const Parameters start(DType::kF64);
  const Dims decayed{0, 0, 1, 1, 1};
  // Gradients of both signs, that change: means cross zero.
  const auto factor = [&](int step) { return o.factor * std::cos(0.3 * step); };
  for (int step = 0; step < 50; ++step) {
    _fused_lion_(p.values, p.grads, p.first, o.lr, o.beta1, o.beta2, o.decay, factor(step),
                 decayed);
  }
  for (size_t t = 0; t < p.values.size(); ++t) {
    for (int64_t i = 0; i < p.values[t].numel(); ++i) {
      double value = element<double>(start.values[t], i), m = 0;
      for (int step = 0; step < 50; ++step) {
        const double g = factor(step) * element<double>(start.grads[t], i);
        const double c = o.beta1 * m + (1 - o.beta1) * g;
        const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
        value -= o.lr * (sign + (decayed[t] != 0 ? o.decay : 0) * value);
        m = o.beta2 * m + (1 - o.beta2) * g;
      }
      ASSERT_NEAR(element<double>(p.values[t], i), value, 1e-13);
      ASSERT_NEAR(element<double>(p.first[t], i), m, 1e-13);
    }
  }
  EXPECT_TRUE(equal(p.grads[2], start.grads[2]));
}

TEST(FusedLion, AGradientOfZeroMovesNothingAndNaNStays) {
  std::vector<Tensor> values = {ones({2})}, means = {zeros({2})};
  std::vector<Tensor> gradients = {full({2}, 0.0)};
  _fused_lion_(values, gradients, means, 0.1, 0.9, 0.99, 0);
  EXPECT_EQ(element<float>(values[0], 1), 1);
  gradients[0].data<float>()[1] = std::nanf("");
  _fused_lion_(values, gradients, means, 0.1, 0.9, 0.99, 0);
  EXPECT_EQ(element<float>(values[0], 0), 1);
  EXPECT_TRUE(std::isnan(element<float>(values[0], 1)));
}

TEST(FusedOptimizers, WriteTheCastsOfWhatTheyUpdate) {
  const Options o;
  for (const DType half : {DType::kBF16, DType::kF16}) {
    Parameters p;
    std::vector<Tensor> casts;
    for (const Tensor& each : p.values) casts.push_back(zeros(each.sizes(), half));
    const auto expect_casts = [&](const char* of) {
      for (size_t i = 0; i < casts.size(); ++i) {
        EXPECT_TRUE(equal(casts[i], p.values[i].to(half))) << of << i;
      }
    };
    const auto adamw = [&](const Tensor& found_inf) {
      _fused_adamw_(p.values, p.grads, p.first, p.second, o.lr, o.beta1, o.beta2, o.decay, o.eps,
                    step_number(1), 1, {}, {}, found_inf, casts);
    };
    adamw(ones({}, DType::kF32));
    EXPECT_TRUE(equal(casts[2], zeros(casts[2].sizes(), half))) << "of a step that was left out";
    adamw({});
    expect_casts("adamw ");
    for (const double momentum : {0.0, 0.9}) {
      _fused_sgd_(p.values, p.grads, p.first, o.lr, momentum, false, o.decay, 1, {}, {}, {}, casts);
      expect_casts("sgd ");
    }
    _fused_lion_(p.values, p.grads, p.first, o.lr, o.beta1, o.beta2, o.decay, 1, {}, {}, {}, casts);
    expect_casts("lion ");
  }
}

TEST(FusedOptimizers, RefuseCastsThatDoNotFit) {
  Parameters p;
  const auto step = [&](const std::vector<Tensor>& casts) {
    _fused_sgd_(p.values, p.grads, {}, 0.1, 0, false, 0, 1, {}, {}, {}, casts);
  };
  std::vector<Tensor> casts;
  for (const Tensor& each : p.values) casts.push_back(zeros(each.sizes(), DType::kBF16));
  std::vector<Tensor> fewer(casts.begin(), casts.end() - 1), other = casts, wide = casts;
  other[2] = zeros({170, 200}, DType::kBF16);
  wide[2] = zeros({200, 170}, DType::kF32);
  EXPECT_THROW(step(fewer), ShapeError);
  EXPECT_THROW(step(other), ShapeError);
  EXPECT_THROW(step(wide), DTypeError);
}

/// One step of each rule, with scalars that may live on a device.
std::vector<Tensor> stepped(double grad_scale, const Tensor& grad_factor = {},
                            const Tensor& found_inf = {}) {
  const Options o;
  Parameters adamw;
  _fused_adamw_(adamw.values, adamw.grads, adamw.first, adamw.second, o.lr, o.beta1, o.beta2,
                o.decay, o.eps, step_number(1), grad_scale, {}, grad_factor, found_inf);
  Parameters sgd;
  _fused_sgd_(sgd.values, sgd.grads, sgd.first, o.lr, 0.9, true, o.decay, grad_scale, {},
              grad_factor, found_inf);
  Parameters lion;
  _fused_lion_(lion.values, lion.grads, lion.first, o.lr, o.beta1, o.beta2, o.decay, grad_scale, {},
               grad_factor, found_inf);
  std::vector<Tensor> all;
  for (const auto* list : {&adamw.values, &adamw.first, &adamw.second, &sgd.values, &sgd.first,
                           &lion.values, &lion.first}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  return all;
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
}

TEST(FusedOptimizers, AFactorInATensorMultipliesTheOther) {
  expect_equal(stepped(0.7, full({}, 0.3, DType::kF64)), stepped(0.7 * 0.3));
  expect_equal(stepped(0.7, {}, zeros({}, DType::kF32)), stepped(0.7));
}

TEST(FusedOptimizers, LeaveTheStepOutWhereFoundInfSaysSo) {
  const Parameters start;
  std::vector<Tensor> want;
  for (const auto* list : {&start.values, &start.first, &start.second, &start.values, &start.first,
                           &start.values, &start.first}) {
    want.insert(want.end(), list->begin(), list->end());
  }
  expect_equal(stepped(0.7, {}, ones({}, DType::kF32)), want);
}

TEST(FusedOptimizers, RefuseNumbersOfAnotherKind) {
  EXPECT_THROW(stepped(1, full({}, 0.3, DType::kF32)), DTypeError);
  EXPECT_THROW(stepped(1, full({2}, 0.3, DType::kF64)), DTypeError);
  EXPECT_THROW(stepped(1, {}, ones({}, DType::kF64)), DTypeError);
}

TEST(FusedOptimizers, RefuseListsThatDoNotMatch) {
  Parameters p;
  std::vector<Tensor> fewer(p.grads.begin(), p.grads.end() - 1);
  EXPECT_THROW(_fused_sgd_(p.values, fewer, p.first, 0.1, 0.9, false, 0), ShapeError);
  std::vector<Tensor> missing = p.grads;
  missing[1] = Tensor();
  EXPECT_ANY_THROW(_fused_sgd_(p.values, missing, p.first, 0.1, 0.9, false, 0));
  EXPECT_THROW(_fused_sgd_(p.values, p.grads, p.first, 0.1, 0.9, false, 0, 1, {1, 0}), ShapeError);
  std::vector<Tensor> turned = p.values;
  turned[2] = zeros({170, 200}).t();
  EXPECT_THROW(_fused_sgd_(turned, p.grads, p.first, 0.1, 0.9, false, 0), ShapeError);
}

TEST(FusedAdamW, StepsCountFromOne) {
  const Parameters p;
  const auto at = [&](const Tensor& step) {
    _fused_adamw_(p.values, p.grads, p.first, p.second, 0.1, 0.9, 0.9, 0, 1e-8, step);
  };
  EXPECT_THROW(at(step_number(0)), IndexError);
  EXPECT_THROW(at(full({}, 1, DType::kI64)), DTypeError);
  EXPECT_THROW(at(full({2}, 1, DType::kF64)), DTypeError);
  expect_equal(p.values, Parameters().values);
  // A skipped step (found_inf) does not check the step number.
  _fused_adamw_(p.values, p.grads, p.first, p.second, 0.1, 0.9, 0.9, 0, 1e-8, step_number(0), 1, {},
                {}, ones({}, DType::kF32));
}

TEST(FusedOptimizers, WritingCountsAsAChangeInPlace) {
  Parameters p;
  const uint32_t before = p.values[2].version();
  _fused_sgd_(p.values, p.grads, {}, 0.1, 0, false, 0);
  EXPECT_GT(p.values[2].version(), before);
}

TEST(BlockSquareSums, AreThoseOfEachTensorsBlocksInTheirOrder) {
  Generator generator(5);
  std::vector<Tensor> list;
  std::vector<double> want;
  for (int64_t count : {0, 1, 4095, 4096, 4097, 0, 20000}) {
    const Tensor x = list.emplace_back(randn({count}, {}, &generator));
    for (int64_t first = 0; first < count; first += kNormBlock) {
      double sum = 0;
      for (int64_t i = first; i < std::min(count, first + kNormBlock); ++i) {
        sum += std::pow(static_cast<double>(element<float>(x, i)), 2);
      }
      want.push_back(sum);
    }
  }
  const Tensor sums = _block_square_sums(list);
  ASSERT_EQ(sums.numel(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(element<double>(sums, static_cast<int64_t>(i)), want[i], 1e-9) << i;
  }
}

TEST(BlockSquareSums, LargeElementsDoNotOverflow) {
  const Tensor x = full({10}, 1e30F);
  EXPECT_NEAR(element<double>(_block_square_sums({x}), 0), 1e61, 1e55);
}

TEST(BlockSquareSums, AreOfTensorsOfOneDType) {
  EXPECT_THROW(_block_square_sums({zeros({2}), zeros({2}, DType::kF64)}), DTypeError);
  EXPECT_THROW(_block_square_sums({zeros({2}, DType::kI64)}), DTypeError);
}

/// Sums of runs of 256 elements, each by a plain loop.
std::vector<double> sums_of_runs(const std::vector<double>& x) {
  std::vector<double> sums((x.size() + 255) / 256, 0.0);
  for (size_t i = 0; i < x.size(); ++i) sums[i / 256] += x[i];
  return sums;
}

TEST(OrderedSum, AddsRunsOf256InOrderAndThenTheirSums) {
  Generator generator(7);
  for (const int64_t count : {1, 3, 256, 257, 5001, 70000}) {
    const Tensor x = randn({count}, DType::kF64, &generator);
    std::vector<double> want;
    for (int64_t i = 0; i < count; ++i) want.push_back(element<double>(x, i));
    do want = sums_of_runs(want);
    while (want.size() > 1);
    EXPECT_EQ(element<double>(_ordered_sum(x), 0), want[0]) << count;
  }
  EXPECT_EQ(element<double>(_ordered_sum(empty({0}, DType::kF64)), 0), 0.0);
  // In any other order the small terms would count.
  std::vector<double> values(100, 1.0);
  values[0] = 0x1p60;
  const Tensor x = empty({100}, DType::kF64);
  std::copy(values.begin(), values.end(), x.data<double>());
  EXPECT_EQ(element<double>(_ordered_sum(x), 0), 0x1p60);
}

TEST(FusedOptimizers, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  std::vector<Tensor> first;
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    Parameters p;
    _fused_adamw_(p.values, p.grads, p.first, p.second, 0.1, 0.9, 0.99, 0.1, 1e-8, step_number(1));
    _fused_sgd_(p.values, p.grads, p.first, 0.1, 0.9, true, 0.1);
    p.values.push_back(_block_square_sums(p.values));
    if (first.empty()) first = p.values;
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(equal(p.values[i], first[i]));
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lockstep
