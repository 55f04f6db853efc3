#include "dist/ddp/ddp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/base/error.h"
#include "dist/group/failure.h"
#include "tests/core/expect_error.h"
#include "tests/dist/ddp/recomputed_product.h"
#include "tests/dist/ddp/small_model.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using testing::HasSubstr;

TEST(Ddp, RanksThatDescendTogetherAreOneRankWithAllSamples) {
  const SmallModel alone;
  for (uint32_t step = 0; step < 4; ++step) {
    for (const Tensor& each : {alone.first, alone.second}) each.set_grad({});
    for (uint32_t rank = 0; rank < 3; ++rank) (alone.loss(10 * step + rank) / 3.0).backward();
    alone.descend();
  }
  std::vector<std::vector<float>> weights(3);
  all_ranks(3, [&](ProcessGroup& group) {
    // Rank 0's parameters are broadcast to all ranks.
    const SmallModel model(group.rank() == 0 ? 1 : 77);
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
    const SmallModel model;
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

      const SmallModel other;
      Ddp at_once(other, group, {.average = false});
      (other.loss(rank) + other.loss(rank + 2) + other.loss(rank + 4)).backward();
      const std::vector<float> expected = numbers(other.second.grad());
      for (size_t i = 0; i < summed.size(); ++i) EXPECT_NEAR(summed[i], expected[i], 1e-5);
    }
  });
}

TEST(Ddp, BackwardWithoutZeroGradAddsToWhatIsThere) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
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
    const SmallModel model;
    Ddp ddp(model, group);
    model.count.fill_(5 + group.rank());
    model.loss(0).backward();
    EXPECT_EQ(numbers(model.count)[0], 5);
  });
}

TEST(Ddp, OtherValuesAreNamedWhereTheyShouldBeTheSame) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model(group.rank() == 0 ? 1 : 2);
    Ddp ddp(model, group, {.broadcast_parameters = false});
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] rank 1 has another model's values than rank 0: "
                                          "expected \"first float32 [6, 8] with hash"));
}

TEST(Ddp, TheTensorWhoseValueDiffersIsNamedOnAllRanks) {
  const auto differs_on_rank_2 = [](auto change) {
    return run_thread_ranks(3, [&](ProcessGroup& group) {
      const SmallModel model;
      const NoGradGuard no_grad;
      if (group.rank() == 2) change(model);
      Ddp ddp(model, group, {.broadcast_parameters = false});
    });
  };
  const auto of_weight = differs_on_rank_2(
      [](const SmallModel& model) { model.second.detach().data<float>()[23] += 1e-7F; });
  const auto of_buffer =
      differs_on_rank_2([](const SmallModel& model) { model.count.data<float>()[0] = 1; });
  for (size_t rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(of_weight[rank] && of_buffer[rank]);
    expect_error<CommonMismatchError>([&] { std::rethrow_exception(of_weight[rank]); },
                                      "[ddp] rank 2 has another model's values than rank 0",
                                      "\"second float32 [8, 3] with hash");
    expect_error<CommonMismatchError>([&] { std::rethrow_exception(of_buffer[rank]); }, "rank 2",
                                      "\"count float32 [1] with hash");
  }
}

/// A module of one tensor, as a parameter or as a buffer.
struct One {
  std::string name;
  Tensor tensor;
  bool is_buffer = false;

  std::vector<NamedTensor> list() const { return {{name, tensor}}; }
  std::vector<NamedTensor> named_parameters() const {
    if (is_buffer) return {{"weight", ones({2}).set_requires_grad()}};
    return {{name, tensor.detach().set_requires_grad()}};
  }
  std::vector<NamedTensor> named_buffers() const {
    return is_buffer ? list() : std::vector<NamedTensor>();
  }
};

TEST(Ddp, OtherNamesShapesAndDtypesAreNamedOnAllRanks) {
  const One expected{"w", zeros({2, 3})};
  const std::vector<One> others = {
      {"v", zeros({2, 3})}, {"w", zeros({3, 2})}, {"w", zeros({2, 3}, {DType::kF64, kCPU})}};
  for (const bool is_buffer : {false, true}) {
    for (const One& other : others) {
      const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
        One own = group.rank() == 1 ? other : expected;
        own.is_buffer = is_buffer;
        Ddp ddp(own, group);
      });
      const std::string line = description(other.list());
      for (const std::exception_ptr& error : errors) {
        ASSERT_TRUE(error);
        expect_error<CommonMismatchError>([&] { std::rethrow_exception(error); }, "rank 1",
                                          "\"w float32 [2, 3]\"",
                                          "\"" + line.substr(0, line.size() - 1) + "\"");
      }
    }
  }
}

TEST(Ddp, AParameterThatWasAddedLaterIsNamed) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallModel model;
    Ddp ddp(model, group);
    model.has_extra = true;
    model.loss(0).backward();
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(texts_of(errors), HasSubstr("[ddp] parameter extra was not there"));
}

/// Error messages of both ranks when the module is changed between wrapping and backward.
template <class F>
std::string error_after(F change) {
  const auto errors = run_thread_ranks(2, [&](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    Ddp ddp(model, group);
    change(model);
    model.loss(1).backward();
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  return texts_of(errors);
}

TEST(Ddp, AModuleThatWasChangedAfterWrappingIsRefusedByName) {
  EXPECT_THAT(error_after([](SmallModel& model) {
                model.second = random_matrix(9, 8, 3).set_requires_grad();
              }),
              HasSubstr("[ddp] parameter second was not there, or another tensor"));
  EXPECT_THAT(error_after([](SmallModel& model) { model.has_extra = false; }),
              HasSubstr("[ddp] parameter extra has gone"));
  EXPECT_THAT(error_after([](SmallModel& model) { model.count = zeros({1}); }),
              HasSubstr("[ddp] buffer count was not there, or another tensor"));
  EXPECT_THAT(error_after([](SmallModel& model) { model.second.set_requires_grad(false); }),
              HasSubstr("[backward] parameter second [8, 3] received no gradient"));
}

TEST(Ddp, AParameterThatOneRankDoesNotUseNeedsTheOption) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    Ddp ddp(model, group);
    model.loss(static_cast<uint32_t>(group.rank())).backward();
  });
  EXPECT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(texts_of(errors),
              HasSubstr("[backward] parameter extra [3, 3] received no gradient"));
  all_ranks(2, [](ProcessGroup& group) {
    SmallModel model;
    model.has_extra = true;
    Ddp ddp(model, group, {.find_unused_parameters = true});
    // `extra` is used by both ranks, then by rank 1, by rank 0, and by none.
    for (uint32_t step = 0; step < 4; ++step) {
      const bool uses_0 = step % 2 == 0, uses_1 = step < 2;
      model.loss((group.rank() == 0 ? uses_0 : uses_1) ? 1 : 0).backward();
      EXPECT_EQ(model.extra.grad().defined(), uses_0 || uses_1) << step;
      ddp.zero_grad();
    }
  });
}

TEST(Ddp, AParameterThatIsUsedTwiceHasOneGradient) {
  const SmallModel alone;
  const auto twice = [](const SmallModel& model, uint32_t sample) {
    const Tensor again =
        mm(mm(tanh(mm(random_matrix(sample, 2, 6), model.first)), model.second), model.second.t());
    return sum(mm(again, model.second));
  };
  (twice(alone, 0) + twice(alone, 1)).backward();
  all_ranks(2, [&](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}, .average = false});
    for (int step = 0; step < 3; ++step) {
      ddp.zero_grad();
      twice(model, static_cast<uint32_t>(group.rank())).backward();
      const std::vector<float> sums = numbers(model.second.grad());
      const std::vector<float> expected = numbers(alone.second.grad());
      for (size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], expected[i], 1e-5);
    }
  });
}

TEST(Ddp, ATensorThatIsTwoParametersIsRefused) {
  all_ranks(1, [](ProcessGroup& group) {
    const Tensor tied = ones({2}).set_requires_grad();
    const auto list = [&] { return std::vector<NamedTensor>{{"in", tied}, {"out", tied}}; };
    const auto none = [] { return std::vector<NamedTensor>(); };
    expect_error<AutogradError>([&] { Ddp(list, none, group); },
                                "[reducer] parameters in and out are one tensor");
  });
}

TEST(Ddp, ManyBuffersGoTogether) {
  all_ranks(3, [](ProcessGroup& group) {
    const SmallModel model;
    std::vector<NamedTensor> buffers;
    for (int64_t i = 0; i < 300; ++i) {
      // Buffers of two dtypes, some of them not dense.
      Tensor each = zeros({4, 3}, {i % 2 == 0 ? DType::kF32 : DType::kI64, kCPU});
      if (i % 3 == 0) each = each.t();
      buffers.push_back({"b" + std::to_string(i), each.fill_(100 * group.rank() + i % 50)});
    }
    Ddp ddp([&] { return model.named_parameters(); }, [&] { return buffers; }, group);
    const auto expect_all = [&](int64_t base) {
      for (size_t i = 0; i < buffers.size(); ++i) {
        const Tensor value = buffers[i].tensor.to(DType::kF32);
        EXPECT_EQ(numbers(value), std::vector<float>(12, static_cast<float>(base + i % 50)));
      }
    };
    expect_all(0);
    for (const NamedTensor& each : buffers) add_(each.tensor, 7 + group.rank());
    model.loss(0).backward();
    expect_all(7);
  });
}

TEST(Ddp, ABackwardThatFailedIsNotTakenForAStep) {
  const auto errors = run_thread_ranks(2, [](ProcessGroup& group) {
    const SmallModel model;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}});
    model.loss(0).backward();
    ddp.zero_grad();
    const Tensor hidden = tanh(mm(random_matrix(9, 2, 6), model.first));
    const HookHandle hook = register_hook(
        hidden, [](const Tensor&) -> Tensor { throw std::runtime_error("a hook failed"); });
    EXPECT_THROW(sum(mm(hidden, model.second)).backward(), std::runtime_error);
    ddp.zero_grad();  // the bucket with the gradient of `second` was already launched
  });
  EXPECT_THAT(texts_of(errors), HasSubstr("[reducer] the step before was not finished"));
}

TEST(Ddp, BackwardsInsideOfBackwardEndWithTheOutermost) {
  all_ranks(2, [](ProcessGroup& group) {
    const SmallModel model, plain;
    Ddp ddp(model, group, {.buckets = {.first_bytes = 1, .bytes = 1}});
    Ddp other(plain, group);
    for (uint32_t step = 0; step < 3; ++step) {
      const auto sample = 2 * step + static_cast<uint32_t>(group.rank());
      const Tensor input = random_matrix(sample + 50, 2, 6);
      sum(RecomputedProduct::apply(tanh(mm(input, model.first)), model.second)).backward();
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
    const SmallModel model;
    Ddp ddp(model, group);
    model.loss(0).backward();
    EXPECT_TRUE(model.first.grad().defined());
  });
}

}  // namespace
}  // namespace lockstep::dist
