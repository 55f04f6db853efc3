#include "core/ops/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include "core/cuda/graph.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "kernels/cuda/optimizer/optimizer.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

/// Parameters with gradients and two states each: too many for one launch, some split into several
/// parts, and one that is not aligned to 16 bytes.
struct Parameters {
  std::vector<Tensor> values, grads, first, second;

  Parameters(DType dtype, Device device) {
    Generator generator(3);
    const auto add = [&](int64_t size, int64_t offset) {
      for (std::vector<Tensor>* list : {&values, &grads, &first, &second}) {
        const Tensor drawn = randn({size + offset}, dtype, &generator).to(device);
        list->push_back(drawn.slice(0, offset));
      }
      second.back().copy_(second.back() * second.back());
    };
    for (const int64_t size : {1, 6, 0, 9001, 4096}) add(size, 0);
    add(4099, 1);
    for (int i = 0; i < 120; ++i) add(i % 7, 0);
  }
  std::vector<Tensor> all() const {
    std::vector<Tensor> tensors = values;
    for (const auto* list : {&first, &second}) {
      tensors.insert(tensors.end(), list->begin(), list->end());
    }
    return tensors;
  }
};

Dims every_second(size_t count) {
  Dims flags;
  for (size_t i = 0; i < count; ++i) flags.push_back(static_cast<int64_t>(i % 2));
  return flags;
}

/// Expects the same bits on both devices after some steps. `step` gets the step number as an f64
/// tensor.
template <class Step>
void expect_the_steps_of_the_cpu(const Step& step) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Parameters here(dtype, kCPU), there(dtype, kGpu);
    for (const int64_t i : {1, 2, 1000, 123457}) {
      step(here, full({}, i, DType::kF64));
      step(there, full({}, i, {DType::kF64, kGpu}));
    }
    const std::vector<Tensor> got = there.all(), want = here.all();
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", tensor " << i);
      expect_equal_bits(got[i], want[i]);
    }
  }
}

TEST(CudaAdamW, LeavesTheBitsOfTheCpu) {
  expect_the_steps_of_the_cpu([](const Parameters& p, const Tensor& step) {
    _fused_adamw_(p.values, p.grads, p.first, p.second, 0.01, 0.9, 0.9999, 0.1, 1e-8, step, 0.7,
                  every_second(p.values.size()));
  });
}

/// Increments the step number, then runs AdamW.
void take_step(const Parameters& p, const Tensor& step, const Tensor& found_inf = {}) {
  add_(step, 1);
  _fused_adamw_(p.values, p.grads, p.first, p.second, 0.01, 0.9, 0.95, 0.1, 1e-8, step, 1, {}, {},
                found_inf);
}

TEST(CudaAdamW, ARecordedStepIsTheNextOneInEachReplay) {
  const Parameters here(DType::kF32, kCPU), there(DType::kF32, kGpu);
  const Tensor step_here = zeros({}, DType::kF64);
  const Tensor step_there = zeros({}, {DType::kF64, kGpu});
  CudaGraph graph(kGpu);
  graph.capture([&] { take_step(there, step_there); });
  for (int i = 0; i < 5; ++i) {
    take_step(here, step_here);
    graph.replay();
  }
  for (size_t i = 0; i < here.all().size(); ++i) expect_equal_bits(there.all()[i], here.all()[i]);
}

TEST(CudaAdamW, AStepThatIsNoneIsReportedAndChangesNothing) {
  const Parameters start(DType::kF32, kCPU), there(DType::kF32, kGpu);
  take_step(there, full({}, -3, {DType::kF64, kGpu}));
  expect_error<Error>([] { synchronize(kGpu); },
                      "[_fused_adamw_] step out of range: expected at least 1", "got -2");
  for (size_t i = 0; i < start.all().size(); ++i) {
    expect_equal_bits(there.all()[i], start.all()[i]);
  }
  // A skipped step (found_inf) does not check the step number.
  take_step(there, full({}, -3, {DType::kF64, kGpu}), ones({}, {DType::kF32, kGpu}));
  synchronize(kGpu);
}

TEST(CudaSgd, LeavesTheBitsOfTheCpuWithAndWithoutMomentum) {
  for (const bool nesterov : {false, true}) {
    expect_the_steps_of_the_cpu([nesterov](const Parameters& p, const Tensor&) {
      _fused_sgd_(p.values, p.grads, p.first, 0.1, 0.9, nesterov, 0.05, 0.7);
    });
  }
  expect_the_steps_of_the_cpu([](const Parameters& p, const Tensor&) {
    _fused_sgd_(p.values, p.grads, {}, 0.1, 0, false, 0.05, 1, every_second(p.values.size()));
  });
}

TEST(CudaLion, LeavesTheBitsOfTheCpu) {
  expect_the_steps_of_the_cpu([](const Parameters& p, const Tensor&) {
    _fused_lion_(p.values, p.grads, p.first, 0.1, 0.9, 0.99, 0.05, 0.7,
                 every_second(p.values.size()));
  });
}

TEST(CudaOptimizers, TakeWhatTheDeviceAloneKnows) {
  for (const float found : {0.0F, 1.0F}) {
    expect_the_steps_of_the_cpu([found](const Parameters& p, const Tensor& step) {
      const Device device = p.values[0].device();
      const Tensor grad_factor = full({}, 0.3, {DType::kF64, device});
      const Tensor found_inf = full({}, found, {DType::kF32, device});
      _fused_adamw_(p.values, p.grads, p.first, p.second, 0.01, 0.9, 0.95, 0.1, 1e-8, step, 0.7, {},
                    grad_factor, found_inf);
      _fused_sgd_(p.values, p.grads, p.first, 0.1, 0.9, true, 0.05, 0.7, {}, grad_factor,
                  found_inf);
      _fused_lion_(p.values, p.grads, p.first, 0.1, 0.9, 0.99, 0.05, 0.7, {}, grad_factor,
                   found_inf);
    });
  }
}

TEST(CudaOptimizers, TakeTheLearningRateFromTheDevice) {
  for (const bool there : {false, true}) {
    expect_the_steps_of_the_cpu([there](const Parameters& p, const Tensor& step) {
      // The cpu's call has the product as an argument, or both.
      const Device device = p.values[0].device();
      const bool is_cpu = device == kCPU;
      const double lr = is_cpu && !there ? 0.5 * 0.3 : 0.5;
      const Tensor factor = is_cpu && !there ? Tensor() : full({}, 0.3, {DType::kF64, device});
      _fused_adamw_(p.values, p.grads, p.first, p.second, lr, 0.9, 0.95, 0.1, 1e-8, step, 0.7,
                    every_second(p.values.size()), {}, {}, {}, factor);
      _fused_sgd_(p.values, p.grads, p.first, lr, 0.9, true, 0.05, 0.7, {}, {}, {}, {}, factor);
      _fused_lion_(p.values, p.grads, p.first, lr, 0.9, 0.99, 0.05, 0.7,
                   every_second(p.values.size()), {}, {}, {}, factor);
    });
  }
}

TEST(CudaOptimizers, WriteTheCastsOfTheCpu) {
  for (const DType half : {DType::kBF16, DType::kF16}) {
    const Parameters here(DType::kF32, kCPU), there(DType::kF32, kGpu);
    std::vector<Tensor> casts[2];
    for (const Parameters* p : {&here, &there}) {
      std::vector<Tensor>& of = casts[p == &here ? 0 : 1];
      const Device device = p->values[0].device();
      // Every third one is not aligned.
      for (size_t i = 0; i < p->values.size(); ++i) {
        const int64_t offset = i % 3 == 2 ? 1 : 0;
        const int64_t size = p->values[i].numel();
        of.push_back(zeros({size + offset}, {half, device}).slice(0, offset));
      }
      const Tensor step = full({}, 3, {DType::kF64, device});
      _fused_adamw_(p->values, p->grads, p->first, p->second, 0.01, 0.9, 0.95, 0.1, 1e-8, step, 0.7,
                    {}, {}, {}, of);
      for (size_t i = 0; i < of.size(); ++i) expect_equal_bits(of[i], p->values[i].to(half));
      _fused_sgd_(p->values, p->grads, {}, 0.1, 0, false, 0.05, 0.7, {}, {}, {}, of);
      _fused_lion_(p->values, p->grads, p->first, 0.1, 0.9, 0.99, 0.05, 0.7, {}, {}, {}, of);
    }
    for (size_t i = 0; i < casts[0].size(); ++i) expect_equal_bits(casts[1][i], casts[0][i]);
  }
}

TEST(CudaOrderedSum, HasTheBitsOfTheCpu) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t count : {0, 1, 31, 255, 256, 257, 4096, 4097, 70000}) {
      const Tensor x = random_tensor({count}, dtype);
      expect_equal_bits(_ordered_sum(x.to(kGpu)), _ordered_sum(x));
    }
  }
}

/// Tensors: too many for one launch, some split into several parts.
std::vector<Tensor> many_tensors(DType dtype) {
  std::vector<Tensor> list;
  for (const int64_t size : {1, 5, 0, 4096, 10007}) list.push_back(random_tensor({size}, dtype));
  for (int64_t i = 0; i < 120; ++i) list.push_back(random_tensor({i % 7}, dtype));
  list.push_back(random_tensor({4097}, dtype));
  return list;
}

TEST(CudaBlockSquareSums, AreThoseOfTheCpuUpToF64Rounding) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    expect_agreement(
        many_tensors(dtype),
        [](const std::vector<Tensor>& t) { return std::vector<Tensor>{_block_square_sums(t)}; },
        1e-14);
  }
}

TEST(CudaBlockSquareSums, HaveTheBitsOfEachTensorAlone) {
  std::vector<Tensor> list, alone;
  for (const Tensor& each : many_tensors(DType::kF32)) {
    list.push_back(each.to(kGpu));
    alone.push_back(_block_square_sums({list.back()}));
  }
  expect_equal_bits(_block_square_sums(list), cat(alone));
}

TEST(CudaBlockSquareSums, HaveTheSameBitsWhereverTheTensorLies) {
  const Tensor x = random_tensor({9003}).to(kGpu);
  const Tensor elsewhere = empty_tensor({9004}, DType::kF32, kGpu).slice(0, 1);
  elsewhere.copy_(x);
  expect_equal_bits(_block_square_sums({elsewhere}), _block_square_sums({x}));
}

TEST(CudaOptimizerStep, FitsIntoTheParametersOfALaunch) {
  EXPECT_LE(sizeof(cuda::OptimizerStep<cuda::AdamWFactors<double>>), 4096U);
  EXPECT_LE(sizeof(cuda::OptimizerStep<cuda::SgdFactors<double>>), 4096U);
  EXPECT_LE(sizeof(cuda::BlockSquareSums), 4096U);
}

}  // namespace
}  // namespace lockstep
