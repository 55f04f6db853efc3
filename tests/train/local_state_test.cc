// What checkpoints hold of ranks that take local steps.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ops/factory/factory.h"
#include "tests/train/rank_runs.h"
#include "train/local_steps.h"

namespace lockstep::train {
namespace {

/// Calls `check` on each of two ranks with the state of parameters a, of 3 numbers, and b, of 300,
/// whose differences are sent in 8 bits after a delay, and the optimizer's state "exp_avg.a".
template <class Check>
void with_states(const Check& check) {
  rethrow_first(dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    const std::vector<dist::NamedTensor> parameters = {{"a", zeros({3})}, {"b", zeros({20, 15})}};
    const dist::LocalSgd local(parameters, group, {.inner_steps = 4, .delay_steps = 1, .bits = 8});
    const LocalState state(local, {{"exp_avg.a", full({3}, 7, DType::kF32), false}});
    check(state, group.rank());
  }));
}

std::string text_of(const std::vector<nn::StoredParameter>& shapes) {
  std::string text;
  for (const nn::StoredParameter& each : shapes) {
    EXPECT_EQ(each.tensor.device(), kMeta);
    text += each.name + each.tensor.shape() + " ";
  }
  return text;
}

/// "tensor:first-end", with "v" where there are values.
std::string text_of(const std::vector<KeptRun>& runs) {
  std::string text;
  for (const KeptRun& each : runs) {
    text += fmt::format("{}:{}-{}{} ", each.tensor, each.first, each.end,
                        each.values.defined() ? "v" : "");
    EXPECT_EQ(each.values.defined() ? each.values.numel() : each.end - each.first,
              each.end - each.first);
  }
  return text;
}

TEST(LocalState, NamesWhatEachRankHasBeforeWhatTheyShare) {
  with_states([](const LocalState& state, int) {
    const std::string own =
        "rank{0}.parameter.a[3] rank{0}.parameter.b[20, 15] rank{0}.exp_avg.a[3] "
        "rank{0}.difference.a[3] rank{0}.difference.b[20, 15] rank{0}.error.a[3] "
        "rank{0}.error.b[20, 15] ";
    const std::string shared =
        "outer_momentum.a[3] outer_momentum.b[20, 15] outer_mean.a[3] outer_mean.b[20, 15] "
        "outer_error.a[3] outer_error.b[20, 15] ";
    EXPECT_EQ(text_of(state.shapes(1)), fmt::format(fmt::runtime(own), 0) + shared);
    EXPECT_EQ(text_of(state.shapes(2)),
              fmt::format(fmt::runtime(own), 0) + fmt::format(fmt::runtime(own), 1) + shared);
  });
}

TEST(LocalState, AllRanksTogetherWriteEachElementOnce) {
  with_states([](const LocalState& state, int self) {
    std::map<size_t, std::vector<int>> times;
    const std::vector<nn::StoredParameter> shapes = state.shapes(2);
    for (const int rank : {0, 1}) {
      for (const KeptRun& each : state.written(rank, 2, self)) {
        std::vector<int>& of_tensor = times[each.tensor];
        of_tensor.resize(static_cast<size_t>(shapes[each.tensor].tensor.numel()));
        for (int64_t i = each.first; i < each.end; ++i) ++of_tensor[static_cast<size_t>(i)];
        EXPECT_EQ(each.values.defined(), rank == self);
      }
    }
    EXPECT_EQ(times.size(), shapes.size());
    for (const auto& [tensor, count] : times) {
      EXPECT_EQ(std::set(count.begin(), count.end()), std::set{1}) << shapes[tensor].name;
    }
  });
}

TEST(LocalState, ARankReadsItsOwnAndAllThatIsShared) {
  with_states([](const LocalState& state, int self) {
    if (self != 0) return;
    // Of the 20 tensors of two ranks 0 to 6 are rank 0's, and 14 to 19 are shared.
    EXPECT_EQ(text_of(state.written(0, 2, 0)),
              "0:0-3v 1:0-300v 2:0-3v 3:0-3v 4:0-300v 5:0-3v 6:0-300v 14:0-3v 16:0-3v 18:0-3v "
              "19:0-256v ");
    EXPECT_EQ(text_of(state.written(1, 2, 0)),
              "7:0-3 8:0-300 9:0-3 10:0-3 11:0-300 12:0-3 13:0-300 15:0-300 17:0-300 19:256-300 ");
    EXPECT_EQ(text_of(state.read(0, 2, 0)),
              "0:0-3v 1:0-300v 2:0-3v 3:0-3v 4:0-300v 5:0-3v 6:0-300v 14:0-3v 15:0-300v 16:0-3v "
              "17:0-300v 18:0-3v 19:0-256v ");
    EXPECT_EQ(text_of(state.read(1, 2, 0)),
              "7:0-3 8:0-300 9:0-3 10:0-3 11:0-300 12:0-3 13:0-300 14:0-3 15:0-300 16:0-3 17:0-300 "
              "19:256-300 ");
    EXPECT_EQ(
        text_of(state.read(1, 1, 0)),
        "0:0-3 1:0-300 2:0-3 3:0-3 4:0-300 5:0-3 6:0-300 7:0-3 8:0-300 9:0-3 10:0-300 12:256-300 ");
    EXPECT_EQ(text_of(state.read(0, 3, 0)),
              "0:0-3v 1:0-300v 2:0-3v 3:0-3v 4:0-300v 5:0-3v 6:0-300v 21:0-3v 22:0-300v 23:0-3v "
              "24:0-300v 25:0-3v 26:0-256v ");
  });
}

TEST(LocalState, TheValuesAreThoseOfTheOptimizer) {
  with_states([](const LocalState& state, int self) {
    const std::vector<nn::StoredParameter> shapes = state.shapes(2);
    for (const KeptRun& each : state.written(self, 2, self)) {
      if (shapes[each.tensor].name != fmt::format("rank{}.exp_avg.a", self)) continue;
      EXPECT_EQ(each.values.data<float>()[2], 7);
      return;
    }
    ADD_FAILURE() << "rank " << self << " does not write its optimizer's state";
  });
}

}  // namespace
}  // namespace lockstep::train
