#include "dist/ddp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/function.h"
#include "autograd/grad_mode.h"
#include "core/error.h"
#include "core/ops/factory.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "tests/dist/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

Tensor random_matrix(uint32_t seed, int64_t rows, int64_t columns) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
  const Tensor result = empty({rows, columns}, DType::kF32);
  std::generate_n(result.data<float>(), result.numel(), [&] { return uniform(random); });
  return result;
}

/// Two layers and a buffer, as a module has them.
struct Model {
  Tensor first, second, extra, count = zeros({1});
  bool has_extra = false;

  explicit Model(uint32_t seed = 1)
      : first(random_matrix(seed, 6, 8).set_requires_grad()),
        second(random_matrix(seed + 1, 8, 3).set_requires_grad()),
        extra(random_matrix(seed + 2, 3, 3).set_requires_grad()) {}

  std::vector<NamedTensor> named_parameters() const {
    std::vector<NamedTensor> list = {{"first", first}, {"second", second}};
    if (has_extra) list.push_back({"extra", extra});
    return list;
  }
  std::vector<NamedTensor> named_buffers() const { return {{"count", count}}; }

  Tensor loss(uint32_t sample) const {
    return sum(mm(tanh(mm(random_matrix(sample + 50, 2, 6), first)), second));
  }
  void descend() const {
    const NoGradGuard no_grad;
    for (const NamedTensor& each : named_parameters()) {
      each.tensor.detach().sub_(each.tensor.grad() * 0.1);
    }
  }
};

std::vector<float> numbers(const Tensor& tensor) {
  const Tensor here = tensor.detach().contiguous();
  return {here.data<float>(), here.data<float>() + here.numel()};
}

std::string texts_of(const std::vector<std::exception_ptr>& errors) {
  std::string text;
  for (const std::exception_ptr& error : errors) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      text += std::string(thrown.what()) + "\n";
    }
  }
  return text;
}

TEST(Ddp, RanksThatDescendTogetherAreOneRankWithAllSamples) {
  const Model alone;
  for (uint32_t step = 0; step < 4; ++step) {
    for (const Tensor& each : {alone.first, alone.second}) each.set_grad({});
    for (uint32_t rank = 0; rank < 3; ++rank) (alone.loss(10 * step + rank) / 3.0).backward();
    alone.descend();
  }
  std::vector<std::vector<float>> weights(3);
  all_ranks(3, [&](ProcessGroup& group) {
    // Rank 0's are taken.
    const Model model(group.rank() == 0 ? 1 : 77);
    Ddp ddp(model, group, {.buckets = {.first_bytes = 100, .bytes = 100}});
    for (uint32_t step = 0; step < 4; ++step) {
      model.loss(10 * step + static_cast<uint32_t>(group.rank())).backward();
      model.descend();
      ddp.zero_grad();
      EXPECT_FALSE(model.first.grad().defined());
    }
    weights[static_cast<size_t>(group.rank())] = numbers(model.first);
  });
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_EQ(weights[0], weights[2]);
  const std::vector<float> expected = numbers(alone.first);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(weights[0][i], expected[i], 1e-5);
}

TEST(Ddp, NoSyncAddsUpUntilTheLastBackward) {
  all_ranks(2, [](ProcessGroup& group) {
    const Model model;
    const auto rank = static_cast<uint32_t>(group.rank());
    Ddp ddp(model, group, {.average = false});
    for (uint32_t step = 0; step < 3; ++step) {
      {
        const auto no_sync = ddp.no_sync();
        model.loss(rank).backward();
        model.loss(rank + 2).backward();
      }
      model.loss(rank + 4).backward();
      const std::vector<float> summed = numbers(model.second.grad());
      ddp.zero_grad();

      const Model other;
      Ddp at_once(other, group, {.average = false});
      (other.loss(rank) + other.loss(rank + 2) + other.loss(rank + 4)).backward();
      const std::vector<float> expected = numbers(other.second.grad());
      for (size_t i = 0; i < summed.size(); ++i) EXPECT_NEAR(summed[i], expected[i], 1e-5);
    }
  });
}

TEST(Ddp, BackwardWithoutZeroGradAddsToWhatIsThere) {
  all_ranks(2, [](ProcessGroup& group) {
    const Model model;
    Ddp ddp(model, group);
    model.loss(static_cast<uint32_t>(group.rank())).backward();
    const std::vector<float> once = numbers(model.first.grad());
    model.loss(static_cast<uint32_t>(group.rank())).backward();
    const std::vector<float> twice = numbers(model.first.grad());
    for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-6);
  });
}

TEST(Ddp, BuffersBecomeThoseOfRankZeroAfterBackward) {
  all_ranks(2, [](ProcessGroup& group) {
    const Model model;
    Ddp ddp(model, group);
    model.count.fill_(5 + group.rank());
    model.loss(0).backward();
    EXPECT_EQ(numbers(model.count)[0], 5);
  });
}

TEST(Ddp, OtherValuesAreNamedWhereTheyShouldBeTheSame) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const Model model(group.rank() == 0 ? 1 : 2);
    Ddp ddp(model, group, {.broadcast_parameters = false});
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] rank 1 has another model's values than rank 0: "
                                          "expected \"first float32 [6, 8] with hash"));
}

TEST(Ddp, AParameterThatWasAddedLaterIsNamed) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    Model model;
    Ddp ddp(model, group);
    model.has_extra = true;
    model.loss(0).backward();
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] parameter extra was not there"));
}

TEST(Ddp, ABackwardThatFailedIsNotTakenForAStep) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const Model model;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}});
    model.loss(0).backward();
    ddp.zero_grad();
    const Tensor hidden = tanh(mm(random_matrix(9, 2, 6), model.first));
    const HookHandle hook = register_hook(
        hidden, [](const Tensor&) -> Tensor { throw std::runtime_error("a hook failed"); });
    EXPECT_THROW(sum(mm(hidden, model.second)).backward(), std::runtime_error);
    ddp.zero_grad();  // the gradient of `second` has left
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("[reducer] the step before was not finished"));
}

/// A product that is computed again in backward, by a backward of its own.
struct Reentrant : Function<Reentrant> {
  static Tensor forward(FunctionContext& context, const Tensor& x, const Tensor& weight) {
    context.save_for_backward({x, weight});
    return mm(x, weight);
  }
  static Gradients backward(FunctionContext& context, const Tensor& grad) {
    const Tensor x = context.saved(0).detach().set_requires_grad();
    {
      const EnableGradGuard recording;
      const Tensor again = mm(x, context.saved(1));
      lockstep::backward(std::vector<Tensor>{again}, std::vector<Tensor>{grad});
    }
    return {x.grad(), Tensor()};
  }
};

TEST(Ddp, BackwardsInsideOfBackwardEndWithTheOutermost) {
  all_ranks(2, [](ProcessGroup& group) {
    const Model model, plain;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}});
    Ddp other(plain, group);
    for (uint32_t step = 0; step < 3; ++step) {
      const auto sample = 2 * step + static_cast<uint32_t>(group.rank());
      const Tensor input = random_matrix(sample + 50, 2, 6);
      sum(Reentrant::apply(tanh(mm(input, model.first)), model.second)).backward();
      plain.loss(sample).backward();
      EXPECT_EQ(numbers(model.first.grad()), numbers(plain.first.grad()));
      EXPECT_EQ(numbers(model.second.grad()), numbers(plain.second.grad()));
      ddp.zero_grad();
      other.zero_grad();
    }
  });
}

TEST(Ddp, OneRankAloneWorksToo) {
  all_ranks(1, [](ProcessGroup& group) {
    const Model model;
    Ddp ddp(model, group);
    model.loss(0).backward();
    EXPECT_TRUE(model.first.grad().defined());
  });
}

}  // namespace
}  // namespace lockstep::dist
